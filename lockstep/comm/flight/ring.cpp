#include "lockstep/comm/flight/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/comm/flight/stack.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Cuts text that is too long; the rest of the field is zero already.
template <size_t N>
void put_text(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

UniqueFd open_ring(const std::string& path) {
  if (!path.empty()) ::unlink(path.c_str());
  UniqueFd fd(path.empty() ? ::memfd_create(kFlightMemfd, MFD_CLOEXEC)
                           : ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) throw io_error("open " + (path.empty() ? "a flight recorder" : path));
  return fd;
}

/// Reserves all of it: a write to a mapped sparse file kills the process if the disk is full.
void* map_ring(int fd, const std::string& path) {
  int failure = EINTR;
  while (failure == EINTR) failure = ::posix_fallocate(fd, 0, sizeof(FlightMemory));
  void* place = MAP_FAILED;
  if (failure == 0) {
    place = ::mmap(nullptr, sizeof(FlightMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    failure = errno;
  }
  if (place != MAP_FAILED) return place;
  if (!path.empty()) ::unlink(path.c_str());
  const std::string what =
      fmt::format("reserve {} KiB for {}", (sizeof(FlightMemory) + 1023) / 1024,
                  path.empty() ? "a flight recorder" : path);
  errno = failure;
  throw io_error(what);
}

/// Earlier stores become visible before later ones. Readers are in other processes, where
/// ThreadSanitizer, which does not support fences, sees nothing anyway.
void order_stores() {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

std::string path_for(int rank) {
  const char* folder = ::getenv("LOCKSTEP_FLIGHT_DIR");
  if (folder == nullptr || *folder == 0) return {};
  return fmt::format("{}/rank_{}{}", folder, rank, kFlightSuffix);
}

/// Maps a file in the folder that the user named. Null if no folder is named, or if the file cannot
/// be made, which is logged.
std::unique_ptr<FlightRing> try_file(int rank, int world_size) {
  const std::string path = path_for(rank);
  if (path.empty()) return nullptr;
  try {
    return std::make_unique<FlightRing>(rank, world_size, path);
  } catch (const Error& error) {
    log_warn(fmt::format(
        "flight recorder: {}; the rank goes on with one in memory, which 'lockstep inspect {}' "
        "reads while it lives, and no file of it stays in {} (LOCKSTEP_FLIGHT_DIR)",
        error.what(), ::getpid(), std::filesystem::path(path).parent_path().string()));
    return nullptr;
  }
}

std::unique_ptr<FlightRing> make_ring(int rank, int world_size) {
  if (auto ring = try_file(rank, world_size)) return ring;
  try {
    return std::make_unique<FlightRing>(rank, world_size, "");
  } catch (const Error& error) {
    log_warn(fmt::format("flight recorder: {}; no process can read the recorder of rank {}",
                         error.what(), rank));
    return std::make_unique<FlightRing>(rank, world_size);
  }
}

/// Called by exit(); a killed process does not reach it.
void note_end(int status, void* ring) {
  auto& own = *static_cast<FlightRing*>(ring);
  if (own.memory().header.pid == ::getpid()) own.end(status);  // not a forked child's
}

constexpr uint32_t kMostLooks = 16;

uint32_t first_look(const CallSite& site) {
  constexpr uint64_t kGolden = 0x9e'37'79'b9'7f'4a'7c'15;
  const auto key = reinterpret_cast<uintptr_t>(site.file) + site.line * kGolden;
  return static_cast<uint32_t>((key * kGolden) >> 32) % kFlightSites;
}

void write(const CallSite& site, FlightSite& entry) {
  std::string_view name = site.file;
  name.remove_prefix(name.find_last_of('/') + 1);  // none: npos + 1 is 0
  constexpr size_t kRoom = sizeof entry.file - 1;
  if (name.size() > kRoom) name.remove_prefix(name.size() - kRoom);
  std::memcpy(entry.file, name.data(), name.size());
  entry.line.store(site.line, std::memory_order_release);
}

}  // namespace

FlightRing& FlightRing::of_rank(int rank, int world_size) {
  static Mutex mutex;
  // The key contains the process: a forked child must not write into its parent's ring. Never
  // destroyed: threads may record while the process ends.
  static auto& rings = *new std::map<std::pair<pid_t, int>, std::unique_ptr<FlightRing>>;
  const MutexLock lock(mutex);
  auto& ring = rings[{::getpid(), rank}];
  if (!ring) {
    ring = make_ring(rank, world_size);
    ::on_exit(note_end, ring.get());
    admit_siblings();  // a stack shows the place of a process that the ring does not show
  }
  return *ring;
}

FlightRing::FlightRing(int rank, int world_size, const std::string& path)
    : fd_(open_ring(path)),
      memory_(new (map_ring(fd_.get(), path)) FlightMemory),
      sites_(memory_->header.sites) {
  fill_header(rank, world_size);
}

FlightRing::FlightRing(int rank, int world_size)
    : own_(std::make_unique<FlightMemory>()), memory_(own_.get()), sites_(memory_->header.sites) {
  fill_header(rank, world_size);
}

void FlightRing::fill_header(int rank, int world_size) {
  FlightHeader& header = memory_->header;
  header.pid = ::getpid();
  header.pid_space = pid_space();
  header.rank = rank;
  header.size = world_size;
  header.realtime_offset_ns = ns_since_1970() - monotonic_ns();
  ::gethostname(header.host, sizeof header.host - 1);
  header.magic = kFlightMagic;
}

std::string recorded_name(std::string_view name) {
  constexpr size_t kLongest = sizeof(FlightGroup::name) - 1;
  if (name.size() <= kLongest) return std::string(name);
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const std::string end = fmt::format("..{:016x}", digest);
  return std::string(name.substr(0, kLongest - end.size())) + end;
}

FlightRing::~FlightRing() {
  if (!own_) ::munmap(memory_, sizeof(FlightMemory));
}

uint16_t FlightRing::add_group(std::string_view name, int rank, int size) {
  MutexLock lock(mutex_);
  FlightHeader& header = memory_->header;
  uint32_t index = header.groups_used.load();
  if (index == kFlightGroups) {
    if (ended_.empty()) return kNoFlightGroup;
    index = ended_.front() & 0xff;
    ended_.pop_front();
  }
  FlightGroup& group = header.groups[index];
  // Readers may mix two groups meanwhile, but only briefly.
  const bool is_new = index == header.groups_used.load();
  if (!is_new) ++group.generation;
  std::memset(group.name, 0, sizeof group.name);
  put_text(group.name, recorded_name(name));
  group.rank = rank;
  group.size = size;
  if (is_new) header.groups_used.store(index + 1);
  return flight_group_id(index, group.generation);
}

void FlightRing::end_group(uint16_t group) {
  MutexLock lock(mutex_);
  const uint32_t index = group & 0xff;
  if (index >= kFlightGroups) return;
  ended_.push_back(group);
}

uint64_t FlightRing::enter(const Operation& operation) {
  const uint64_t number = memory_->header.events_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
  event.number.store(0, std::memory_order_relaxed);  // readers: incomplete
  order_stores();
  event.sequence = operation.sequence;
  event.count = operation.count;
  event.bytes = operation.bytes;
  event.entered_ns = operation.entered_ns != 0 ? operation.entered_ns : monotonic_ns();
  event.left_ns = 0;
  event.peer = operation.peer;
  event.waits = operation.waits ? 1 : 0;
  event.bucket = operation.site.bucket;
  event.site = sites_.find_or_add(operation.site);
  event.group = operation.group;
  event.dtype = operation.dtype;
  event.failed = 0;
  std::strncpy(event.call, operation.call, sizeof event.call - 1);
  event.number.store(number, std::memory_order_release);
  return number;
}

void FlightRing::wait_for(uint64_t number) {
  FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
  if (event.number.load(std::memory_order_relaxed) == number) event.waits = 1;
}

void FlightRing::leave(uint64_t number, uint8_t failed) {
  FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
  if (event.number.load(std::memory_order_relaxed) != number) return;  // overwritten long ago
  event.failed = failed;
  event.left_ns = monotonic_ns();
}

uint16_t SiteIndex::find_or_add(const CallSite& site) {
  if (site.line == 0 || site.file == nullptr) return 0;
  uint32_t index = first_look(site);
  for (uint32_t look = 0; look < kMostLooks; ++look, index = (index + 1) % kFlightSites) {
    Slot& slot = slots_[index];
    State state = slot.state.load(std::memory_order_acquire);
    if (state == kFree && slot.state.compare_exchange_strong(state, kTaken)) {
      slot.line = site.line;
      slot.file = site.file;
      write(site, table_[index]);
      slot.state.store(kWritten, std::memory_order_release);
      return static_cast<uint16_t>(index + 1);
    }
    if (state == kWritten && slot.line == site.line && slot.file == site.file) {
      return static_cast<uint16_t>(index + 1);
    }
  }
  return 0;
}

}  // namespace lockstep::inline internal
