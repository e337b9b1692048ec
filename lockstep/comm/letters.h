#pragma once
// send and recv with tags: what a letter is, and which recv gets it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/types.h"

namespace lockstep {

/// What goes before each letter.
struct Envelope {
  int64_t count = 0;
  int32_t tag = 0;
  DType dtype = DType::kUint8;
  uint8_t unused[3] = {};
  int64_t bytes() const { return count * size_of(dtype); }
};
/// "4 float32, tag 1".
std::string describe(const Envelope& envelope);

/// What is kept, per source, of letters that nobody has asked for yet.
inline constexpr int64_t kMaxEarlyBytes = int64_t{256} << 20;

/// Where a back end puts the letter that it reads: see GroupImpl::receive().
class LetterSink {
 public:
  struct Place {
    std::byte* data;
    Deadline deadline;  ///< Of the recv that the letter is for.
  };
  virtual ~LetterSink() = default;
  /// First of all, before anything is touched: what it throws ends the group, and that may happen
  /// beside another read of the same source.
  virtual void look() = 0;
  /// A letter has come; its bytes go to the result. Errors: kMismatch.
  virtual Place begin(const Envelope& envelope) = 0;
  /// All its bytes are there. Errors: kMismatch.
  virtual void end() = 0;
  /// What is waited for, for errors: "4 float32, tag 1".
  virtual std::string wanted() = 0;
};

/// Matches the letters of one source with the recvs for them: each goes to the first recv with its
/// tag, whatever the order of tags; one for which there is none yet is kept. No threads, no
/// waiting. Cost: O(log n) a call for n tags that wait or are kept, and the copy of what was kept.
class Letters {
 public:
  /// A recv that waits.
  struct Slot {
    Envelope wanted;
    std::byte* data = nullptr;
    Deadline deadline;
    uint64_t order = 0;  ///< For the caller.
  };

  /// Names of the two ranks, for errors.
  Letters(std::string source, std::string self)
      : source_(std::move(source)), self_(std::move(self)) {}

  /// True: a letter that was kept has filled `slot`. Else it waits, behind those before it.
  bool post(Slot* slot);
  /// Takes `slot` back. False: its letter is coming just now.
  bool withdraw(const Slot* slot);
  /// Throws kMismatch where a kept letter has the tag of a waiting slot, and does not fit.
  void look() const;
  /// A letter begins. Its bytes belong at the result until end(). Errors: kMismatch when it is not
  /// what the slot with its tag wants, or when there is no room for what nobody has asked for.
  LetterSink::Place begin(const Envelope& envelope, Deadline deadline);
  /// The letter is whole; returns the slot that has it, null: it is kept. Errors: kMismatch.
  Slot* end();
  /// "; letters with tags 2, 3 are here": those that are kept; else empty.
  std::string told_kept() const;
  /// What one of those that wait wants; null: none waits.
  const Envelope* wanted() const;

 private:
  struct Kept {
    Envelope envelope;
    std::vector<std::byte> data;
  };
  Slot* find(int32_t tag) const;
  void check(const Envelope& came, const Envelope& wanted) const;

  const std::string source_;
  const std::string self_;
  // By tag; no queue is empty.
  std::map<int32_t, std::deque<Slot*>> waiting_;
  std::map<int32_t, std::deque<Kept>> kept_;
  int64_t kept_bytes_ = 0;
  std::vector<Slot*> misfits_;  // of those that wait: a kept letter has the tag
  Slot* coming_for_ = nullptr;  // between begin() and end(), unless it goes to coming_
  Kept coming_;
};

}  // namespace lockstep
