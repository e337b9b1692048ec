#pragma once
// One writer at a time in a folder of results, even if an earlier writer is disconnected or stopped
// and is unaware of its replacement.
//
// A restarted job is generation 2, 3, ... Its writer leaves DIR/.writer-JOB-G, then removes
// unfinished work of earlier generations, and only then looks for a checkpoint to resume from.
// After a writer fills a hidden folder, and before it gives the folder its name, it checks that no
// newer generation has left its mark. So either an older writer named its folder before the newer
// one looked, or its hidden folder is gone and rename fails.
//
// A mark holds the token of its generation. If a job splits into partitions, each may start a
// generation of the same number: the first to leave its mark stays.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

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

/// A value; copies are the same writer.
class WriterFence {
 public:
  /// For a program outside of jobs: nothing is newer.
  WriterFence() : name_(WriterName::own()) {}
  /// Leaves the mark of a generation (from 1) of a job in `dir`, which exists, and removes the
  /// marks of earlier ones. Generation 1 begins a job: it removes all marks but those of its own
  /// launch. `token`: "LAUNCH-LEADER", World::generation_token; empty: there is none.
  /// Errors: kMismatch if a newer generation, or another one of this number, left its mark; kIo.
  WriterFence(const std::filesystem::path& dir, const std::string& job_id, int64_t generation,
              std::string token = "");

  /// Makes the constructor's first check, without leaving a mark. A missing folder passes.
  static void refuse_if_replaced(const std::filesystem::path& dir, const std::string& job_id,
                                 int64_t generation, const std::string& token);

  /// Errors: kMismatch naming the newer generation. Cost: one listing of the folder, and a read of
  /// a mark.
  void check() const;
  /// Returns ".NAME.tmp-" and this writer.
  std::string hidden(const std::string& name) const;
  const WriterName& name() const { return name_; }

 private:
  bool replaced_by(const std::string& file, int64_t generation, bool begins) const;
  void look(bool begins) const;
  void leave_mark() const;

  std::filesystem::path dir_;  // empty: outside of jobs
  WriterName name_;
  std::string token_;
};

}  // namespace lockstep
