#pragma once
// send and recv with tags: the message, and the recv that gets it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// The header of each message.
struct MessageHeader {
  int64_t count = 0;
  int32_t tag = 0;
  DType dtype = DType::kUint8;
  uint8_t unused[3] = {};
  int64_t bytes() const { return count * size_of(dtype); }
};
/// "4 float32, tag 1".
std::string describe(const MessageHeader& header);

/// Limit, per source, of early messages: they are kept until a recv is posted for them.
inline constexpr int64_t kMaxEarlyBytes = int64_t{256} << 20;

/// Receives the message that a back end reads: see GroupImpl::receive().
class MessageSink {
 public:
  struct Destination {
    std::byte* data;
    Deadline deadline;  ///< Of the recv that the message is for.
  };
  virtual ~MessageSink() = default;
  /// Called first, before anything is touched. An exception ends the group, and may be thrown
  /// beside another read of the same source.
  virtual void look() = 0;
  /// A message has begun; its bytes go to the result. Errors: kMismatch.
  virtual Destination begin(const MessageHeader& header) = 0;
  /// All its bytes have been received. Errors: kMismatch.
  virtual void end() = 0;
  /// The message that is awaited, for errors: "4 float32, tag 1".
  virtual std::string wanted() = 0;
};

/// Matches the messages of one source with the recvs for them. Each message goes to the first recv
/// with its tag, whatever the order of tags. A message without a recv is kept. No threads, no
/// waiting. Cost: O(log n) per call for n tags that wait or are kept, and a copy of each kept
/// message.
class MessageMatcher {
 public:
  /// A waiting recv.
  struct Slot {
    MessageHeader wanted;
    std::byte* data = nullptr;
    Deadline deadline;
    uint64_t order = 0;  ///< For the caller.
  };

  /// Names of the two ranks, for errors.
  MessageMatcher(std::string source, std::string self)
      : source_(std::move(source)), self_(std::move(self)) {}

  /// True: a kept message has filled `slot`. Else `slot` waits, behind earlier ones.
  bool post(Slot* slot);
  /// Withdraws `slot`. False: its message is arriving.
  bool withdraw(const Slot* slot);
  /// Throws kMismatch if a kept message has the tag of a waiting slot and does not fit.
  void look() const;
  /// A message begins. Its bytes go to the result until end(). Errors: kMismatch if it does not fit
  /// the slot with its tag, or if there is no room for an early message.
  MessageSink::Destination begin(const MessageHeader& header, Deadline deadline);
  /// The message is complete. Returns the slot that has it; null: it is kept. Errors: kMismatch.
  Slot* end();
  /// "; of rank 1 there are messages with tags 2, 3": the kept messages; else empty.
  std::string told_kept() const;
  /// The message that one waiting slot awaits; null: none waits.
  const MessageHeader* wanted() const;

 private:
  struct Kept {
    MessageHeader header;
    std::vector<std::byte> data;
  };
  Slot* find(int32_t tag) const;
  void check(const MessageHeader& came, const MessageHeader& wanted) const;

  const std::string source_;
  const std::string self_;
  // By tag; no queue is empty.
  std::map<int32_t, std::deque<Slot*>> waiting_;
  std::map<int32_t, std::deque<Kept>> kept_;
  int64_t kept_bytes_ = 0;
  std::vector<Slot*> misfits_;  // waiting slots: a kept message has the tag
  Slot* coming_for_ = nullptr;  // between begin() and end(), unless it goes to coming_
  Kept coming_;
};

}  // namespace lockstep::inline internal
