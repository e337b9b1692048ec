#pragma once
// Sums over ranks that own several subtrees each: virtual ranks dealt to any number of ranks.

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

namespace lockstep {

/// Sums the values of all ranks' subtrees (see owned_subtrees()) in the order of the tree over the
/// virtual ranks. For the numbers of ranks of which all_reduce() adds in another order: see
/// ranks_add_as_tree().
///
/// Each rank adds one slice of every value: the ranks exchange slices, and then the sums. Both
/// happen in chunks; while a chunk travels, the one before it is added, in the calling thread. The
/// additions are this class's own, so they have the same order on every back end.
///
/// Cost: a rank with k subtrees sends k + 1 times the bytes of a value, less its own slice, where
/// all_reduce() sends 2. Memory: see kChunkBytes. All ranks make the same calls.
class SubtreeReduction {
 public:
  /// Chunks that a rank has in memory: two at a time, each once for every subtree of a rank and
  /// once for every slice that it receives.
  static constexpr int64_t kChunkBytes = 1 << 20;

  /// Collective. `max_bytes`: no value is larger, or at least no larger chunks are worth while.
  SubtreeReduction(ProcessGroup group, const VirtualRankRange& range, int64_t max_bytes);
  /// As abandon().
  ~SubtreeReduction();
  SubtreeReduction(const SubtreeReduction&) = delete;
  SubtreeReduction& operator=(const SubtreeReduction&) = delete;

  /// Collective. Starts a sum: `values` has those of this rank's subtrees, in order, and is read
  /// before this returns; `out` becomes the sum over all ranks. It may be one of the values.
  /// Returns a function that waits for it, to be called in the order of the sums and on all ranks.
  /// Errors: those of the group.
  std::function<void()> start(std::span<const void* const> values, void* out, int64_t count,
                              DType dtype, CallSite site = CallSite::here());

  /// Leaves what was started unfinished: waits only until nothing uses its memory any more.
  void abandon() noexcept;

 private:
  struct Chunk {
    int64_t sum = 0;  ///< Of which sum it is a part.
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
  std::vector<int64_t> subtrees_of_;  ///< By rank: how many.
  TreeSum sum_;
  int64_t chunk_bytes_;
  int64_t sent_bytes_, received_bytes_;   ///< Of a place.
  std::shared_ptr<SharedBuffer> memory_;  ///< Two places to send from, two to receive in.
  int64_t num_sums_ = 0;                  ///< Started so far.
  int next_place_ = 0;
  std::optional<Chunk> on_its_way_;               ///< The last chunk sent, not added yet.
  std::map<int64_t, std::vector<Work>> gathers_;  ///< By sum.
};

/// Collective. The sum over all virtual ranks of each row's quantity, in the tree's order, from the
/// values of this rank's virtual ranks: rows[i][k] is quantity i of virtual rank range.first + k.
/// Cost: one all_gatherv.
std::vector<double> sum_over_virtual_ranks(ProcessGroup& group, const VirtualRankRange& range,
                                           const std::vector<std::vector<double>>& rows);

}  // namespace lockstep
