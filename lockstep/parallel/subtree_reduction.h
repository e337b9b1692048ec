#pragma once
// Sums over ranks that own several subtrees each: virtual ranks distributed over any number of
// ranks.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/comm/spans.h"
#include "lockstep/comm/tree_sum.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// Sums the values of all ranks' subtrees (see owned_subtrees()) in the order of the tree over the
/// virtual ranks. For numbers of ranks with which all_reduce() adds in another order: see
/// ranks_add_as_tree().
///
/// Each rank adds one slice of every value: the ranks exchange slices, and then the sums. Both
/// happen in chunks; while a chunk is on its way, the calling thread adds the previous one. The
/// additions are this class's own, so they have the same order on every back end.
///
/// Cost: a rank with k subtrees sends k + 1 times the bytes of a value, less its own slice;
/// all_reduce() sends 2 times. Memory: see kChunkBytes. All ranks make the same calls.
class SubtreeReduction {
 public:
  /// Size of a chunk. A rank has two chunks in memory at a time, each once per subtree of a rank
  /// and once per slice that it receives.
  static constexpr int64_t kChunkBytes = 1 << 20;

  /// Collective. `max_bytes`: size of the largest value, or of the largest chunk that is worth
  /// while.
  SubtreeReduction(ProcessGroup group, const VirtualRankRange& range, int64_t max_bytes);
  /// As abandon().
  ~SubtreeReduction();
  SubtreeReduction(const SubtreeReduction&) = delete;
  SubtreeReduction& operator=(const SubtreeReduction&) = delete;

  /// Collective. Starts a sum. `values`: those of this rank's subtrees, in order; they are read
  /// before this returns. `out` becomes the sum over all ranks. `out` may be one of the values.
  /// Returns a function that waits for it; call these in the order of the sums and on all ranks.
  /// Errors: those of the group.
  std::function<void()> start(std::span<const void* const> values, void* out, int64_t count,
                              DType dtype, CallSite site = CallSite::here());

  /// Leaves started sums unfinished: waits only until nothing uses their memory any more.
  void abandon() noexcept;

 private:
  struct Chunk {
    int64_t sum = 0;  ///< The sum of which it is a part.
    std::byte* out = nullptr;
    int64_t count = 0;
    DType dtype = DType::kFloat32;
    int place = 0;
    CallSite site;
    Work arrival;
  };

  void send(std::span<const void* const> values, int64_t offset, Chunk chunk);
  void add(Chunk chunk);
  void finish(int64_t sum);
  Span slice(const Chunk& chunk, int rank) const;
  std::vector<const void*> arrived(const Chunk& chunk) const;
  std::byte* sent_place(int place) const;
  std::byte* received_place(int place) const;

  ProcessGroup group_;
  std::vector<int64_t> subtrees_of_;  ///< By rank: number of subtrees.
  TreeSum sum_;
  int64_t chunk_bytes_;
  int64_t sent_bytes_, received_bytes_;   ///< Bytes of a place.
  std::shared_ptr<SharedBuffer> memory_;  ///< Two places to send from, two to receive in.
  int64_t num_sums_ = 0;                  ///< Started so far.
  int next_place_ = 0;
  std::optional<Chunk> on_its_way_;               ///< The last chunk sent, not added yet.
  std::map<int64_t, std::vector<Work>> gathers_;  ///< By sum.
};

/// Collective. The sum over all virtual ranks of each row's quantity, in the tree's order.
/// rows[i][k] is quantity i of virtual rank range.first + k. Cost: one all_gatherv.
std::vector<double> sum_over_virtual_ranks(ProcessGroup& group, const VirtualRankRange& range,
                                           const std::vector<std::vector<double>>& rows);

}  // namespace lockstep::inline internal
