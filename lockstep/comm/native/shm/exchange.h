#pragma once
// Exchanges (lockstep/comm/exchange.h) between the ranks of a host.

#include <optional>
#include <string>

#include "lockstep/comm/exchange.h"
#include "lockstep/comm/native/shm/staged.h"

namespace lockstep::shm {

/// One rank's part, in three acts. The table of what goes where, and a stream of at most
/// kSmallStreamBytes, are handed in before the ranks meet at the operation's header, so that a
/// small exchange costs one barrier more. Larger ones are copied from where they lie when all
/// inputs can be reached, else pass through the staging areas in chunks.
class ExchangeCall {
 public:
  ExchangeCall(const StagedCall& call, const Exchange& exchange, const void* in, void* out);

  /// Before Barrier::enter(). Nobody reads the staging areas then: the last round of every
  /// operation that does ends with a barrier.
  void hand_in();

  /// What a rank sends to this one and what this one expects of it, where they differ.
  struct Disagreement {
    int sender;
    int64_t sent;
    int64_t expected;
  };
  /// After Barrier::enter(), as all that follows.
  std::optional<Disagreement> disagreement() const;
  /// `inputs` by rank: where each one's input can be reached; empty when some cannot.
  void run(const std::vector<std::byte*>& inputs);

 private:
  static constexpr int64_t kSmallStreamBytes = 16 << 10;
  /// What a rank sends to another one, in elements. A row of them lies in its staging area.
  struct Entry {
    int64_t offset;
    int64_t count;
    int64_t position;  ///< In the sender's stream.
    int64_t stream;    ///< Size of that stream.
  };

  Entry* row(int rank) const {
    return reinterpret_cast<Entry*>(call_.control.staging(rank).out[0]);
  }
  const Entry& from(int rank) const { return row(rank)[call_.rank]; }
  std::byte* place_of(int sender) const {
    return out_ + exchange_.receives[static_cast<size_t>(sender)].offset * size_;
  }
  void stage(int64_t round);
  void take(int64_t round);
  void copy_own();

  const StagedCall& call_;
  const Exchange& exchange_;
  const std::byte* const in_;
  std::byte* const out_;
  const int64_t size_;   // bytes of an element
  const int64_t chunk_;  // elements of a round
  const OutStream stream_;
  const bool small_;  // this rank's stream goes whole before the barrier
};

}  // namespace lockstep::shm
