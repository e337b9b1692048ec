#pragma once
// TensorBoard's event files: records of TFRecord, each an Event message of protobuf.
//
// Sources: tensorflow/core/lib/io/record_writer.h (framing), tensorboard/compat/proto/event.proto
// and summary.proto (numbers of fields).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

using Scalars = std::vector<std::pair<std::string, double>>;

/// One record: length, its masked CRC-32C, the bytes, theirs.
std::string event_record(const std::string& event);
/// The first event of a file: the version of its format. `wall_time`: seconds since 1970.
std::string version_event(double wall_time);
/// A run begins or goes on with `step`: readers drop what earlier files have from there on.
std::string start_event(double wall_time, int64_t step);
/// Values of one step, float32, under their tags.
std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars);

/// A run's own event file in a folder, which may have those of earlier runs. A thread writes, so
/// that no call waits for the disk; a process that is killed loses the last second. A write error
/// costs one warning and the rest of the file. For one caller.
class EventFile {
 public:
  /// Makes the folder, and in it events.out.tfevents.TIME.HOST.PID, whose name comes after those of
  /// earlier files. `next_step`: the first step to come. The thread calls `check` before it writes,
  /// and writes no more once that throws an Error. Errors: kIo.
  EventFile(const std::filesystem::path& folder, int64_t next_step, const std::string& host,
            std::function<void()> check = {});
  ~EventFile();  ///< Writes what is left.
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Errors: kMismatch, if `check` threw that.
  void add(int64_t step, const Scalars& scalars);
  const std::filesystem::path& path() const { return path_; }

 private:
  void run();
  std::optional<Error> write(const std::string& records) const;

  const std::function<void()> check_;
  std::filesystem::path path_;
  UniqueFd fd_;
  Mutex mutex_;
  CondVar changed_;                                  // stopping_ became true
  std::string waiting_ LOCKSTEP_GUARDED_BY(mutex_);  // whole records
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

/// crc32c_of() as TFRecord stores it, so that a checksum of checksums is no special case.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep::inline internal
