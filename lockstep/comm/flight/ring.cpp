#include "lockstep/comm/flight/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"

namespace lockstep {
namespace {

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Cuts what is too long; the rest of the field is zero already.
template <size_t N>
void put_text(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

int open_ring(const std::string& path) {
  const int fd = path.empty() ? ::memfd_create(kFlightMemfd, MFD_CLOEXEC)
                              : ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw io_error("open " + (path.empty() ? "a flight recorder" : path));
  return fd;
}

std::string path_for(int rank) {
  const char* folder = ::getenv("LOCKSTEP_FLIGHT_DIR");
  if (folder == nullptr || *folder == 0) return {};
  return fmt::format("{}/rank_{}{}", folder, rank, kFlightSuffix);
}

/// A ring for those that can have none: ordinary memory that nobody reads.
std::unique_ptr<FlightRing> make_ring(int rank, int world_size) {
  try {
    return std::make_unique<FlightRing>(rank, world_size, path_for(rank));
  } catch (const Error& error) {
    log_warn(fmt::format("flight recorder: {}; this rank's is in memory only", error.what()));
    return std::make_unique<FlightRing>(rank, world_size, "");
  }
}

}  // namespace

FlightRing& FlightRing::of_rank(int rank, int world_size) {
  static Mutex mutex;
  // By process as well: a forked child must not write into its parent's. Never destroyed: threads
  // may record while the process ends.
  static auto& rings = *new std::map<std::pair<pid_t, int>, std::unique_ptr<FlightRing>>;
  const MutexLock lock(mutex);
  auto& ring = rings[{::getpid(), rank}];
  if (!ring) ring = make_ring(rank, world_size);
  return *ring;
}

FlightRing::FlightRing(int rank, int world_size, const std::string& path) : fd_(open_ring(path)) {
  void* place = MAP_FAILED;
  if (::ftruncate(fd_, sizeof(FlightMemory)) == 0) {
    place = ::mmap(nullptr, sizeof(FlightMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }
  if (place == MAP_FAILED) {
    const Error error = io_error("map a flight recorder");
    ::close(fd_);
    throw error;
  }
  memory_ = new (place) FlightMemory;
  FlightHeader& header = memory_->header;
  header.pid = ::getpid();
  header.rank = rank;
  header.size = world_size;
  header.realtime_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
  ::gethostname(header.host, sizeof header.host - 1);
  header.magic = kFlightMagic;
}

FlightRing::~FlightRing() {
  ::munmap(memory_, sizeof(FlightMemory));
  ::close(fd_);
}

uint16_t FlightRing::add_group(std::string_view name, int rank, int size) {
  const uint32_t index = memory_->header.groups_used.fetch_add(1);
  if (index >= kFlightGroups) return kFlightGroups - 1;
  FlightGroup& group = memory_->header.groups[index];
  put_text(group.name, name);
  group.rank = rank;
  group.size = size;
  return static_cast<uint16_t>(index);
}

uint64_t FlightRing::enter(const Operation& operation) {
  const uint64_t number = memory_->header.events_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
  event.number.store(0, std::memory_order_relaxed);  // readers: not whole
  event.sequence = operation.sequence;
  event.count = operation.count;
  event.bytes = operation.bytes;
  event.entered_ns = clock_ns(CLOCK_MONOTONIC);
  event.left_ns = 0;
  event.peer = operation.peer;
  event.group = operation.group;
  event.dtype = operation.dtype;
  event.failed = 0;
  std::strncpy(event.call, operation.call, sizeof event.call - 1);
  event.number.store(number, std::memory_order_release);
  return number;
}

void FlightRing::leave(uint64_t number, bool failed) {
  FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
  if (event.number.load(std::memory_order_relaxed) != number) return;  // long since overwritten
  event.failed = failed ? 1 : 0;
  event.left_ns = clock_ns(CLOCK_MONOTONIC);
}

}  // namespace lockstep
