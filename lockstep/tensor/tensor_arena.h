#pragma once
// Lets libtorch compute tensors directly in memory that the peers on this host can read.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// Blocks of shared memory of certain sizes. While an arena serves a thread, a CPU tensor made in
/// that thread lies in a free block if it needs exactly the block's size. The block is free again
/// when the tensor's storage is. Several may serve a thread at once, as when one backward pass goes
/// through several models.
///
/// Correctness does not depend on it: when all blocks of a size are taken, memory comes from
/// libtorch's usual allocator. The gain for a gradient of many MiB: no copy into shared memory. Nor
/// are pages taken from the kernel and returned in every step, which costs more than the copy.
///
/// The arena lives until its last handle and its last tensor are gone. Any thread may free.
///
/// It replaces libtorch's own allocator for CPU tensors, once per process, when the first arena is
/// made (do that before threads compute). It affects only requests of at least kMinBytes.
class TensorArena {
 public:
  static constexpr int64_t kMinBytes = int64_t{1} << 20;

  /// Bytes that blocks of these sizes need. Every block starts on a page of its own.
  static int64_t bytes_needed(const std::vector<int64_t>& block_bytes);

  /// block_bytes: each at least kMinBytes. `memory`: at least bytes_needed().
  static std::shared_ptr<TensorArena> make(std::shared_ptr<SharedBuffer> memory,
                                           const std::vector<int64_t>& block_bytes);
  ~TensorArena();
  TensorArena(const TensorArena&) = delete;
  TensorArena& operator=(const TensorArena&) = delete;

  /// `arena` serves the calling thread from now on, before all others that serve it.
  static void serve_this_thread(const std::shared_ptr<TensorArena>& arena);
  static void stop_serving_this_thread(const std::shared_ptr<TensorArena>& arena);

  /// True if `data` lies in a block.
  bool holds(const void* data) const;

 private:
  struct Block {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    std::shared_ptr<TensorArena> user;  ///< This arena while the block is taken.
  };
  friend class ArenaAllocator;

  explicit TensorArena(std::shared_ptr<SharedBuffer> memory) : memory_(std::move(memory)) {}

  std::shared_ptr<SharedBuffer> memory_;
  std::vector<Block> blocks_;  ///< Guarded by the allocator's mutex.
};

}  // namespace lockstep::inline internal
