#include "lockstep/tensor/tensor_arena.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "lockstep/base/mutex.h"
#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kPageBytes = 4096;

int64_t round_up_to_page(int64_t bytes) {
  return round_up(bytes, kPageBytes);
}

/// In order of age, the latest last.
thread_local std::vector<std::shared_ptr<TensorArena>> serving;

}  // namespace

/// Replaces libtorch's CPU allocator and forwards to it. In its memory the context of a DataPtr is
/// the data itself: oneDNN's scratch memory comes through raw_allocate(), which requires that.
class ArenaAllocator final : public c10::Allocator {
 public:
  /// Never destroyed: tensors in static variables free their memory through it at the very end.
  static ArenaAllocator& instance() {
    static auto* const allocator = new ArenaAllocator(c10::GetCPUAllocator());
    return *allocator;
  }

  // libtorch declares one of these two (const until 2.2), and copy_data since 2.2; without
  // `override` the same lines fit all versions.
  c10::DataPtr allocate(size_t bytes) const { return serve(bytes); }
  c10::DataPtr allocate(size_t bytes) { return serve(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_any; }

  void enter(TensorArena* arena) {
    const MutexLock lock(mutex_);
    arenas_.push_back(arena);
  }
  void leave(TensorArena* arena) {
    const MutexLock lock(mutex_);
    std::erase(arenas_, arena);
  }

 private:
  explicit ArenaAllocator(c10::Allocator* usual) : usual_(usual) { c10::SetCPUAllocator(this); }

  c10::DataPtr serve(size_t bytes) const {
    if (bytes >= static_cast<size_t>(TensorArena::kMinBytes)) {
      for (auto arena = serving.rbegin(); arena != serving.rend(); ++arena) {
        if (std::byte* data = take(*arena, static_cast<int64_t>(bytes))) {
          return {data, data, &free_any, c10::Device(c10::DeviceType::CPU)};
        }
      }
    }
    return usual_->allocate(bytes);
  }

  std::byte* take(const std::shared_ptr<TensorArena>& arena, int64_t bytes) const {
    const MutexLock lock(mutex_);
    for (auto& block : arena->blocks_) {
      if (block.bytes != bytes || block.user) continue;
      block.user = arena;
      return block.data;
    }
    return nullptr;
  }

  /// True if `data` was a block.
  bool give_back(void* data) {
    std::shared_ptr<TensorArena> user;  // destroyed, perhaps as the last owner, after unlocking
    const MutexLock lock(mutex_);
    for (TensorArena* arena : arenas_) {
      if (!arena->holds(data)) continue;
      for (auto& block : arena->blocks_) {
        if (block.data == data) user = std::exchange(block.user, nullptr);
      }
      return true;
    }
    return false;
  }

  static void free_any(void* data) {
    if (!instance().give_back(data)) instance().usual_->raw_deleter()(data);
  }

  c10::Allocator* const usual_;
  mutable Mutex mutex_;
  std::vector<TensorArena*> arenas_;
};

int64_t TensorArena::bytes_needed(const std::vector<int64_t>& block_bytes) {
  int64_t total = 0;
  for (const int64_t bytes : block_bytes) total += round_up_to_page(bytes);
  return total;
}

std::shared_ptr<TensorArena> TensorArena::make(std::shared_ptr<SharedBuffer> memory,
                                               const std::vector<int64_t>& block_bytes) {
  std::shared_ptr<TensorArena> arena(new TensorArena(std::move(memory)));
  auto* data = static_cast<std::byte*>(arena->memory_->data());
  for (const int64_t bytes : block_bytes) {
    arena->blocks_.push_back({data, bytes, nullptr});
    data += round_up_to_page(bytes);
  }
  ArenaAllocator::instance().enter(arena.get());
  return arena;
}

TensorArena::~TensorArena() {
  ArenaAllocator::instance().leave(this);
}

void TensorArena::serve_this_thread(const std::shared_ptr<TensorArena>& arena) {
  stop_serving_this_thread(arena);
  serving.push_back(arena);
}

void TensorArena::stop_serving_this_thread(const std::shared_ptr<TensorArena>& arena) {
  std::erase(serving, arena);
}

bool TensorArena::holds(const void* data) const {
  const auto* begin = static_cast<const std::byte*>(memory_->data());
  return data >= begin && data < begin + memory_->bytes();
}

}  // namespace lockstep::inline internal
