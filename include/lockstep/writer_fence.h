#pragma once
// One writer at a time in a folder of results, also where the one before it is cut off or stopped
// and does not know that it was replaced.
//
// A job is started anew as generation 2, 3, ... Its writer leaves DIR/.writer-JOB-G behind, then
// removes what earlier generations had half written, and only then looks what to go on from. A
// writer checks, between filling a hidden folder and giving it its name, that no newer generation
// has left its mark. So what an older one gives a name to was there before the newer one looked,
// or its hidden folder is gone, and rename fails.
//
// A mark holds the token of its generation. Where a job falls into halves that are cut off from
// each other, each may make a generation of the same number: the one that comes first stays.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// A process that writes, as hidden names have it:
/// ".step_000020.tmp-JOB+3+HOST+NAMESPACE+PID+START".
struct WriterName {
  std::string job;         ///< Eight hex digits of the job's id; "none" outside of jobs.
  int64_t generation = 0;  ///< 0 outside of jobs.
  std::string host;        ///< Its name.
  uint64_t pid_space = 0;  ///< Its pid namespace and boot, mixed: where `pid` means something.
  int64_t pid = 0;
  uint64_t start = 0;  ///< When that process started, in the kernel's ticks: pids come again.

  bool operator==(const WriterName&) const = default;
  std::string text() const;
  /// Nothing for what is no such text. What stands behind it, from a '.' on, is passed over.
  static std::optional<WriterName> parse(const std::string& text);
  /// This process.
  static WriterName own(const std::string& job_id = "", int64_t generation = 0);
};

/// Whether what `writer` has half written is of no more use to `own`: it belongs to an earlier
/// generation of the same job, or to a process of this very host that is not there any more. What
/// another host's process writes is left alone, for nobody can tell.
bool is_left_over(const WriterName& writer, const WriterName& own);

/// A value; copies are the same writer.
class WriterFence {
 public:
  /// Of a program that is no job's: nothing is newer.
  WriterFence() : name_(WriterName::own()) {}
  /// Leaves the mark of a generation (from 1) of a job in `dir`, which exists, and takes those of
  /// earlier ones away. Generation 1 takes all away, as a job's beginning, but those of its own
  /// launch. `token`: "LAUNCH-LEADER", World::generation_token; empty: there is none.
  /// Errors: kMismatch when a newer generation, or another of this number, has been here; kIo.
  WriterFence(const std::filesystem::path& dir, const std::string& job_id, int64_t generation,
              std::string token = "");

  /// What the constructor does first, without leaving a mark. A folder that is not there is free.
  static void refuse_if_replaced(const std::filesystem::path& dir, const std::string& job_id,
                                 int64_t generation, const std::string& token);

  /// Errors: kMismatch naming the newer generation. Cost: a look into the folder, and at a mark.
  void check() const;
  /// ".NAME.tmp-" and this writer.
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
