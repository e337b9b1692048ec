#pragma once
// The process behind a WriterFence: its name in hidden names, and its mark in the folder.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// A writing process, as encoded in hidden names:
/// ".step_000020.tmp-JOB+3+HOST+NAMESPACE+PID+START".
struct WriterName {
  std::string job;         ///< Eight hex digits of the job's id; "none" outside of jobs.
  int64_t generation = 0;  ///< 0 outside of jobs.
  std::string host;        ///< Its name.
  uint64_t pid_space = 0;  ///< Its pid namespace and boot, mixed: the scope of `pid`.
  int64_t pid = 0;
  uint64_t start = 0;  ///< Start time of that process, in the kernel's ticks: pids are reused.

  bool operator==(const WriterName&) const = default;
  std::string text() const;
  /// Nothing for other texts. Ignores the part from a '.' on.
  static std::optional<WriterName> parse(const std::string& text);
  /// This process.
  static WriterName own(const std::string& job_id = "", int64_t generation = 0);
};

/// Whether `own` may remove unfinished work of `writer`. True if that is of an earlier generation
/// of the same job, or if its process on this host has ended. Files of another host's process stay,
/// because nothing shows whether it still runs.
bool is_left_over(const WriterName& writer, const WriterName& own);

class Writer {
 public:
  /// Outside of jobs.
  Writer() : name_(WriterName::own()) {}
  /// Changes nothing on disk.
  Writer(std::filesystem::path dir, const std::string& job_id, int64_t generation,
         std::string token);

  static const Writer& of(const WriterFence& fence) { return *fence.writer_; }

  const WriterName& name() const { return name_; }
  /// Returns ".NAME.tmp-" and this writer.
  std::string hidden(const std::string& name) const;
  /// See WriterFence::check().
  void check() const;
  /// check() for a writer that has not left its mark yet. A missing folder passes.
  void check_before_mark() const;
  /// Leaves the mark, and removes those that it replaces.
  void replace_others() const;

 private:
  bool begins() const { return name_.generation == 1; }
  bool replaced_by(const std::string& file, int64_t generation, bool begins) const;
  void look(bool begins) const;
  void leave_mark() const;

  std::filesystem::path dir_;  // empty: outside of jobs
  WriterName name_;
  std::string token_;
};

}  // namespace lockstep::inline internal
