#pragma once
// Memory from allocate(): one segment with a slot for each rank of the host.

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/comm/native/shm/barrier.h"
#include "lockstep/comm/native/shm/segment.h"

namespace lockstep::shm {

/// The mapping of all slots; shared by the user's buffer and by operations in progress.
class SlotMemory {
 public:
  SlotMemory(Mapping mapping, int64_t stride, uint64_t number)
      : mapping_(std::move(mapping)), stride_(stride), number_(number) {}
  std::byte* slot(int rank) const { return mapping_.data() + rank * stride_; }
  uint64_t number() const { return number_; }

 private:
  Mapping mapping_;
  int64_t stride_;
  uint64_t number_;
};

/// The memory that one rank has allocated. The list forgets memory whose buffer is gone. For the
/// thread of the collectives, unless stated otherwise.
class SharedMemoryList {
 public:
  SharedMemoryList(const GroupSpec& spec, Control control) : spec_(spec), control_(control) {}

  /// Collective, within an operation that has been entered. Errors: kUnavailable on all ranks if
  /// one has no memory.
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, Barrier& barrier, const Waiting& waiting);

  struct Found {
    SharedOffset shared;
    std::shared_ptr<SlotMemory> memory;  ///< Null if the data lies elsewhere.
  };
  /// Where [data, data + bytes) lies in this rank's slots.
  Found find(const void* data, int64_t bytes);
  /// The same; any thread.
  Found find_any_thread(const void* data, int64_t bytes);

  /// The data at an offset of another rank's slot, and the owner of its mapping.
  struct Seen {
    const std::byte* data = nullptr;  ///< Null: this rank does not have it mapped, or not any more.
    std::shared_ptr<SlotMemory> memory;
  };
  /// Any thread.
  Seen see(int rank, const SharedOffset& shared, int64_t bytes);

 private:
  struct Entry {
    const std::byte* slot;
    int64_t bytes;
    std::weak_ptr<SlotMemory> memory;
  };
  Found look_for(const void* data, int64_t bytes) const;
  UniqueFd open_slots(int64_t total, Barrier& barrier, const Waiting& waiting, std::string& why);
  std::optional<Mapping> map_slots(int fd, int64_t stride, int64_t bytes, std::string& why);

  const GroupSpec& spec_;
  const Control control_;
  uint64_t made_ = 0;
  Mutex changing_;              // held by other threads that read the list, and for changes of it
  std::vector<Entry> entries_;  // the collectives' thread changes it; it reads without the mutex
};

}  // namespace lockstep::shm
