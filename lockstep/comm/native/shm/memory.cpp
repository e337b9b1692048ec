#include "lockstep/comm/native/shm/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/rounding.h"
#include "lockstep/base/text.h"

namespace lockstep::shm {
namespace {

class SlotBuffer : public SharedBuffer {
 public:
  SlotBuffer(std::shared_ptr<SlotMemory> memory, int rank, int64_t bytes)
      : memory_(std::move(memory)), rank_(rank), bytes_(bytes) {}
  void* data() const override { return memory_->slot(rank_); }
  int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<SlotMemory> memory_;
  int rank_;
  int64_t bytes_;
};

/// Runs `body`; on kUnavailable keeps the text, so that all ranks can agree before one throws.
template <class Body>
void note_failure(std::string& why, const Body& body) {
  if (!why.empty()) return;
  try {
    body();
  } catch (const Error& error) {
    why = error.what();
  }
}

}  // namespace

UniqueFd SharedMemoryList::open_slots(int64_t total, Barrier& barrier, const Waiting& waiting,
                                      std::string& why) {
  auto& record = control_.head().allocation;
  UniqueFd fd;
  if (spec_.rank == 0) {
    note_failure(why, [&] { fd = make_memory(total); });
    record = {to_remote(fd.get()), fd ? 0 : 1};
  }
  barrier.sync(waiting);
  if (record.failed != 0) {
    if (why.empty()) why = "rank 0 of the host has no memory";
  } else if (spec_.rank != 0) {
    note_failure(why, [&] { fd = open_memory(record.memory); });
  }
  return fd;
}

std::optional<Mapping> SharedMemoryList::map_slots(int fd, int64_t stride, int64_t bytes,
                                                   std::string& why) {
  std::optional<Mapping> mapping;
  note_failure(why, [&] {
    commit_memory(fd, spec_.rank * stride, bytes);
    mapping.emplace(fd, stride * spec_.size);
  });
  return mapping;
}

std::shared_ptr<SharedBuffer> SharedMemoryList::allocate(int64_t bytes, Barrier& barrier,
                                                         const Waiting& waiting) {
  const int64_t used = round_up(std::max<int64_t>(bytes, 1), 4096);
  const int64_t stride = bytes > 4096 ? round_up(bytes, kHugePage) : used;
  std::string why;
  const UniqueFd fd = open_slots(stride * spec_.size, barrier, waiting, why);
  auto mapping = map_slots(fd.get(), stride, used, why);
  control_.slot(spec_.rank).allocate_failed = why.empty() ? 0 : 1;
  barrier.sync(waiting);
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (control_.slot(rank).allocate_failed == 0) continue;
    if (why.empty()) why = spec_.rank_name(rank) + " has no memory for it";
    break;
  }
  // No rank starts the next operation, and with it another record, before all have looked.
  barrier.sync(waiting);
  if (!why.empty()) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("allocate of {} a rank: {}", format_bytes(bytes), why));
  }
  auto memory = std::make_shared<SlotMemory>(std::move(*mapping), stride, ++made_);
  {
    const MutexLock lock(changing_);
    entries_.push_back({memory->slot(spec_.rank), bytes, memory});
  }
  return std::make_shared<SlotBuffer>(std::move(memory), spec_.rank, bytes);
}

/// Addresses of freed memory may have been reused since.
SharedMemoryList::Found SharedMemoryList::look_for(const void* data, int64_t bytes) const {
  const auto* const start = static_cast<const std::byte*>(data);
  for (const Entry& entry : entries_) {
    const std::ptrdiff_t offset = start - entry.slot;
    if (offset < 0 || offset + bytes > entry.bytes) continue;
    if (auto memory = entry.memory.lock()) return {{memory->number(), offset}, std::move(memory)};
  }
  return {};
}

SharedMemoryList::Found SharedMemoryList::find(const void* data, int64_t bytes) {
  const auto is_gone = [](const Entry& entry) { return entry.memory.expired(); };
  if (std::any_of(entries_.begin(), entries_.end(), is_gone)) {
    const MutexLock lock(changing_);
    std::erase_if(entries_, is_gone);
  }
  return look_for(data, bytes);
}

SharedMemoryList::Found SharedMemoryList::find_any_thread(const void* data, int64_t bytes) {
  const MutexLock lock(changing_);
  return look_for(data, bytes);
}

SharedMemoryList::Seen SharedMemoryList::see(int rank, const SharedOffset& shared, int64_t bytes) {
  const MutexLock lock(changing_);
  for (const Entry& entry : entries_) {
    auto memory = entry.memory.lock();
    if (!memory || memory->number() != shared.segment) continue;
    if (shared.offset < 0 || bytes > entry.bytes - shared.offset) return {};
    return {memory->slot(rank) + shared.offset, std::move(memory)};
  }
  return {};
}

}  // namespace lockstep::shm
