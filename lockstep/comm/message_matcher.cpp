#include "lockstep/comm/message_matcher.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/comm/bytes.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

std::string describe(const MessageHeader& header) {
  return fmt::format("{} {}, tag {}", header.count, to_string(header.dtype), header.tag);
}

MessageMatcher::Slot* MessageMatcher::find(int32_t tag) const {
  const auto found = waiting_.find(tag);
  return found == waiting_.end() ? nullptr : found->second.front();
}

const MessageHeader* MessageMatcher::wanted() const {
  return waiting_.empty() ? nullptr : &waiting_.begin()->second.front()->wanted;
}

bool MessageMatcher::post(Slot* slot) {
  const auto& wanted = slot->wanted;
  const auto kept = kept_.find(wanted.tag);
  const MessageHeader* const first = kept == kept_.end() ? nullptr : &kept->second.front().header;
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

bool MessageMatcher::withdraw(const Slot* slot) {
  if (slot == coming_for_) return false;
  const auto queue = waiting_.find(slot->wanted.tag);
  if (queue == waiting_.end()) return true;
  std::erase(queue->second, slot);
  if (queue->second.empty()) waiting_.erase(queue);
  std::erase(misfits_, slot);
  return true;
}

void MessageMatcher::look() const {
  for (const Slot* slot : misfits_) {
    check(kept_.at(slot->wanted.tag).front().header, slot->wanted);
  }
}

MessageSink::Destination MessageMatcher::begin(const MessageHeader& header, Deadline deadline) {
  if (Slot* const slot = find(header.tag)) {
    check(header, slot->wanted);
    coming_for_ = slot;
    return {slot->data, slot->deadline};
  }
  if (header.bytes() > kMaxEarlyBytes - kept_bytes_) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{} sent {} first, and {} has no room to keep it: receive messages of "
                            "this size in the order in which they are sent",
                            source_, describe(header), self_));
  }
  coming_ = {header, std::vector<std::byte>(static_cast<size_t>(header.bytes()))};
  return {coming_.data.data(), deadline};
}

MessageMatcher::Slot* MessageMatcher::end() {
  Slot* slot = coming_for_;
  if (slot == nullptr) {
    slot = find(coming_.header.tag);  // a recv was posted while it arrived
    if (slot == nullptr) {
      kept_bytes_ += coming_.header.bytes();
      kept_[coming_.header.tag].push_back(std::move(coming_));
      return nullptr;
    }
    check(coming_.header, slot->wanted);
    copy_bytes(slot->data, coming_.data.data(), coming_.header.bytes());
    coming_ = {};
  }
  coming_for_ = nullptr;
  withdraw(slot);
  return slot;
}

std::string MessageMatcher::told_kept() const {
  constexpr size_t kTold = 8;
  if (kept_.empty()) return "";
  std::string tags;
  size_t told = 0;
  for (const auto& [tag, messages] : kept_) {
    if (++told > kTold) break;
    tags += fmt::format("{}{}", tags.empty() ? "" : ", ", tag);
  }
  const bool one_message = kept_.size() == 1 && kept_.begin()->second.size() == 1;
  return fmt::format("; of {} there {} with tag{} {}{}", source_,
                     one_message ? "is a message" : "are messages", kept_.size() == 1 ? "" : "s",
                     tags, kept_.size() > kTold ? ", ..." : "");
}

void MessageMatcher::check(const MessageHeader& came, const MessageHeader& wanted) const {
  if (came.count == wanted.count && came.dtype == wanted.dtype) return;
  throw Error(ErrorCode::kMismatch, fmt::format("{} sent {} {}, {} called recv for {} {} (tag {})",
                                                source_, came.count, to_string(came.dtype), self_,
                                                wanted.count, to_string(wanted.dtype), came.tag));
}

}  // namespace lockstep::inline internal
