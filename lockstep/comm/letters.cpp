#include "lockstep/comm/letters.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/comm/bytes.h"
#include "lockstep/error.h"

namespace lockstep {

std::string describe(const Envelope& envelope) {
  return fmt::format("{} {}, tag {}", envelope.count, to_string(envelope.dtype), envelope.tag);
}

Letters::Slot* Letters::find(int32_t tag) const {
  const auto found = waiting_.find(tag);
  return found == waiting_.end() ? nullptr : found->second.front();
}

const Envelope* Letters::wanted() const {
  return waiting_.empty() ? nullptr : &waiting_.begin()->second.front()->wanted;
}

bool Letters::post(Slot* slot) {
  const auto& wanted = slot->wanted;
  const auto kept = kept_.find(wanted.tag);
  const Envelope* const first = kept == kept_.end() ? nullptr : &kept->second.front().envelope;
  const bool fits = first != nullptr && find(wanted.tag) == nullptr &&
                    first->count == wanted.count && first->dtype == wanted.dtype;
  if (!fits) {
    waiting_[wanted.tag].push_back(slot);
    if (first != nullptr) misfits_.push_back(slot);
    return false;
  }
  copy_bytes(slot->data, kept->second.front().data.data(), first->bytes());
  kept_bytes_ -= first->bytes();
  kept->second.pop_front();
  if (kept->second.empty()) kept_.erase(kept);
  return true;
}

bool Letters::withdraw(const Slot* slot) {
  if (slot == coming_for_) return false;
  const auto queue = waiting_.find(slot->wanted.tag);
  if (queue == waiting_.end()) return true;
  std::erase(queue->second, slot);
  if (queue->second.empty()) waiting_.erase(queue);
  std::erase(misfits_, slot);
  return true;
}

void Letters::look() const {
  for (const Slot* slot : misfits_) {
    check(kept_.at(slot->wanted.tag).front().envelope, slot->wanted);
  }
}

LetterSink::Place Letters::begin(const Envelope& envelope, Deadline deadline) {
  if (Slot* const slot = find(envelope.tag)) {
    check(envelope, slot->wanted);
    coming_for_ = slot;
    return {slot->data, slot->deadline};
  }
  if (envelope.bytes() > kMaxEarlyBytes - kept_bytes_) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{} sent {} first, and {} has no room to keep it: receive letters of "
                            "this size in the order in which they are sent",
                            source_, describe(envelope), self_));
  }
  coming_ = {envelope, std::vector<std::byte>(static_cast<size_t>(envelope.bytes()))};
  return {coming_.data.data(), deadline};
}

Letters::Slot* Letters::end() {
  Slot* slot = coming_for_;
  if (slot == nullptr) {
    slot = find(coming_.envelope.tag);  // a recv was posted while it arrived
    if (slot == nullptr) {
      kept_bytes_ += coming_.envelope.bytes();
      kept_[coming_.envelope.tag].push_back(std::move(coming_));
      return nullptr;
    }
    check(coming_.envelope, slot->wanted);
    copy_bytes(slot->data, coming_.data.data(), coming_.envelope.bytes());
    coming_ = {};
  }
  coming_for_ = nullptr;
  withdraw(slot);
  return slot;
}

std::string Letters::told_kept() const {
  constexpr size_t kTold = 8;
  if (kept_.empty()) return "";
  std::string tags;
  size_t told = 0;
  for (const auto& [tag, letters] : kept_) {
    if (++told > kTold) break;
    tags += fmt::format("{}{}", tags.empty() ? "" : ", ", tag);
  }
  const bool one_letter = kept_.size() == 1 && kept_.begin()->second.size() == 1;
  return fmt::format("; of {} there {} with tag{} {}{}", source_,
                     one_letter ? "is a letter" : "are letters", kept_.size() == 1 ? "" : "s", tags,
                     kept_.size() > kTold ? ", ..." : "");
}

void Letters::check(const Envelope& came, const Envelope& wanted) const {
  if (came.count == wanted.count && came.dtype == wanted.dtype) return;
  throw Error(ErrorCode::kMismatch, fmt::format("{} sent {} {}, {} called recv for {} {} (tag {})",
                                                source_, came.count, to_string(came.dtype), self_,
                                                wanted.count, to_string(wanted.dtype), came.tag));
}

}  // namespace lockstep
