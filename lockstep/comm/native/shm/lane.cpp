#include "lockstep/comm/native/shm/lane.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace lockstep::shm {
namespace {

/// Replaces the ends by the result of `change`; returns the previous ones. Empty: `change` leaves
/// them as they are.
template <class Change>
std::optional<Ends> change_ends(std::atomic<uint64_t>& word, const Change& change) {
  uint64_t seen = word.load();
  while (true) {
    const auto before = Ends::unpacked(seen);
    const std::optional<Ends> after = change(before);
    if (!after) return std::nullopt;
    if (word.compare_exchange_weak(seen, after->packed())) return before;
  }
}

int64_t slot_of(uint32_t chunk) {
  return int64_t{chunk % Lane::kSlots} * Lane::kSlotBytes;
}

}  // namespace

size_t LaneChunks::size(uint32_t chunk) const {
  return static_cast<size_t>(std::min(Lane::kSlotBytes, bytes - offset(chunk)));
}

std::optional<Ends> Ends::one_to_the_sender() const {
  if (front == back) return std::nullopt;
  return Ends{front + 1, back};
}

std::optional<Ends> Ends::one_to_the_receiver() const {
  if (front == back) return std::nullopt;
  return Ends{front, back - 1};
}

LaneStep next_step(Ends ends, uint32_t filled, uint32_t taken, bool may_read) {
  if (filled > taken) return LaneStep::kTake;
  if (ends.front != ends.back) return may_read ? LaneStep::kReadBack : LaneStep::kWait;
  if (taken == ends.front) return LaneStep::kDone;
  return may_read ? LaneStep::kReadBegun : LaneStep::kWait;
}

void LaneSender::open() {
  filled_ = 0;
  lane_.filled.store(0);
  lane_.emptied.store(0);
  lane_.ends.store(Ends{0, chunks_.count()}.packed());
}

bool LaneSender::can_fill() const {
  const auto ends = Ends::unpacked(lane_.ends.load());
  return ends.front != ends.back && filled_ - lane_.emptied.load() < Lane::kSlots;
}

bool LaneSender::fill() {
  if (filled_ - lane_.emptied.load() >= Lane::kSlots) return false;
  const auto before = change_ends(lane_.ends, [](Ends ends) { return ends.one_to_the_sender(); });
  if (!before) return false;
  const uint32_t chunk = before->front;
  std::memcpy(slots_ + slot_of(chunk), data_ + chunks_.offset(chunk), chunks_.size(chunk));
  lane_.filled.store(++filled_);
  return true;
}

LaneStep LaneReceiver::next(bool may_read) const {
  // The ends first: once they have met, chunks filled afterwards are all that will come.
  const auto ends = Ends::unpacked(lane_.ends.load());
  return next_step(ends, lane_.filled.load(), taken_, may_read);
}

void LaneReceiver::take() {
  std::memcpy(to_ + chunks_.offset(taken_), slots_ + slot_of(taken_), chunks_.size(taken_));
  lane_.emptied.store(++taken_);
}

LaneReceiver::Read LaneReceiver::read(LaneStep step) {
  if (step == LaneStep::kReadBegun) {
    if (!read_chunk(taken_)) return Read::kRefused;  // the sender still owns it
    ++taken_;
    return Read::kDone;
  }
  const auto before = change_ends(lane_.ends, [](Ends ends) { return ends.one_to_the_receiver(); });
  if (!before) return Read::kNothing;
  if (read_chunk(before->back - 1)) return Read::kDone;
  change_ends(lane_.ends, [](Ends ends) { return std::optional(ends.one_returned()); });
  return Read::kRefused;
}

bool LaneReceiver::read_chunk(uint32_t chunk) {
  std::byte* to = to_ + chunks_.offset(chunk);
  uint64_t from = origin_.address + static_cast<uint64_t>(chunks_.offset(chunk));
  for (size_t left = chunks_.size(chunk); left > 0;) {
    const iovec here{to, left};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
    const iovec there{reinterpret_cast<void*>(from), left};
    const ssize_t done = ::process_vm_readv(origin_.pid, &here, 1, &there, 1, 0);
    if (done <= 0) return false;
    to += done;
    from += static_cast<uint64_t>(done);
    left -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace lockstep::shm
