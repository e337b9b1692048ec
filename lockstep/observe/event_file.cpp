#include "lockstep/observe/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/crc32.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/error.h"
#include "lockstep/observe/log_file.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kEventPrefix = "events.out.tfevents.";

/// Little-endian.
template <typename Number>
std::string fixed_bytes(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof number; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i) & 0xff));
  }
  return bytes;
}

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>((number & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

// Fields of protobuf: the number with the kind of value, then the value.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string field(uint64_t number, Wire wire, const std::string& value) {
  return varint(number << 3 | wire) + value;
}

std::string bytes_field(uint64_t number, const std::string& bytes) {
  return field(number, kBytes, varint(bytes.size()) + bytes);
}

/// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string event_of(double wall_time, int64_t step) {
  return field(1, kFixed64, fixed_bytes(std::bit_cast<uint64_t>(wall_time))) +
         field(2, kVarint, varint(static_cast<uint64_t>(step)));
}

/// Summary.Value: tag = 1, simple_value = 2.
std::string summary_value(const std::string& tag, double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return bytes_field(1, tag) + field(2, kFixed32, fixed_bytes(bits));
}

/// Later than the times of all files in `folder`: readers take them in the order of their names.
int64_t next_time(const std::filesystem::path& folder) {
  auto time = static_cast<int64_t>(seconds_since_1970());
  constexpr int64_t kLatest = int64_t{1} << 40;  // of a file that somebody else named
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kEventPrefix)) continue;
    const int64_t other = std::atoll(name.c_str() + std::strlen(kEventPrefix));
    time = std::max(time, std::min(other, kLatest) + 1);
  }
  if (failure) {
    throw Error(ErrorCode::kIo, fmt::format("read {}: {}", folder.string(), failure.message()));
  }
  return time;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t kMask = 0xa282ead8;
  const uint32_t crc = crc32c_of(bytes);
  return (crc >> 15 | crc << 17) + kMask;
}

std::string event_record(const std::string& event) {
  const std::string length = fixed_bytes(uint64_t{event.size()});
  return length + fixed_bytes(masked_crc32c(length)) + event + fixed_bytes(masked_crc32c(event));
}

std::string version_event(double wall_time) {
  return event_of(wall_time, 0) + bytes_field(3, "brain.Event:2");
}

std::string start_event(double wall_time, int64_t step) {
  constexpr uint64_t kStart = 1;  // SessionLog: status = 1
  return event_of(wall_time, step) + bytes_field(7, field(1, kVarint, varint(kStart)));
}

std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) summary += bytes_field(1, summary_value(tag, value));
  return event_of(wall_time, step) + bytes_field(5, summary);
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t next_step,
                     const std::string& host, std::function<void()> check)
    : check_(std::move(check)) {
  make_folder(folder);
  path_ = folder / fmt::format("{}{:010}.{}.{}", kEventPrefix, next_time(folder), host, ::getpid());
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd_) throw io_error("create " + path_.string());
  const double now = seconds_since_1970();
  waiting_ = event_record(version_event(now)) + event_record(start_event(now, next_step));
  thread_ = start_thread_with_signals_blocked([this] { run(); });
}

EventFile::~EventFile() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EventFile::add(int64_t step, const Scalars& scalars) {
  std::string record = event_record(scalars_event(seconds_since_1970(), step, scalars));
  const MutexLock lock(mutex_);
  if (!failure_) {
    waiting_ += record;
  } else if (failure_->code() == ErrorCode::kMismatch) {
    throw Error(*failure_);
  }
}

std::optional<Error> EventFile::write(const std::string& records) const {
  if (records.empty()) return std::nullopt;
  try {
    if (check_) check_();
    write_all(fd_.get(), records.data(), records.size(), path_.string());
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void EventFile::run() {
  MutexLock lock(mutex_);
  for (bool last = false; !last && !failure_;) {
    last = stopping_;
    const std::string records = std::exchange(waiting_, {});
    lock.unlock();
    const auto failure = write(records);
    if (failure && failure->code() != ErrorCode::kMismatch) {
      log_warn(fmt::format("TensorBoard's events are lost: {}", failure->what()));
    }
    lock.lock();
    failure_ = failure;
    if (!last && !failure_ && !stopping_) changed_.wait_for(lock, std::chrono::seconds(1));
  }
  waiting_.clear();
}

}  // namespace lockstep::inline internal
