#pragma once
// Exchanges (lockstep/comm/exchange.h) between the ranks of a host.

#include <optional>

#include "lockstep/comm/exchange.h"
#include "lockstep/comm/native/shm/staged.h"

namespace lockstep::shm {

/// One rank's part, in three steps. The table of blocks, and a stream of at most kSmallStreamBytes,
/// are written before the ranks meet at the operation's header. So a small exchange costs one
/// barrier more. Larger ones are copied from their place if all inputs can be reached; else they
/// pass through the staging areas in chunks.
class ExchangeCall {
 public:
  ExchangeCall(const StagedCall& call, const Exchange& exchange, const void* in, void* out);

  /// Before Barrier::enter(). No rank reads the staging areas then: the last round of every
  /// operation that does so ends with a barrier.
  void hand_in();

  /// Different counts of a sender and of this rank for one block.
  struct Disagreement {
    int sender;
    int64_t sent;
    int64_t expected;
  };
  /// This and run() come after Barrier::enter().
  std::optional<Disagreement> disagreement() const;
  /// `inputs` by rank: the address of each rank's input; empty if some cannot be reached.
  void run(const std::vector<std::byte*>& inputs);

 private:
  static constexpr int64_t kSmallStreamBytes = 16 << 10;
  /// A block that a rank sends to another one, in elements. A row of entries lies in its staging
  /// area.
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
  const bool small_;  // this rank's stream is written whole before the barrier
};

}  // namespace lockstep::shm
