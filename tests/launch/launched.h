#pragma once
// A `lockstep` process under test: started, watched, signalled.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::testing {

class Launched {
 public:
  /// The group of the process: the tests' or its own.
  enum class Group { kTests, kOwn };

  /// Starts $LOCKSTEP_BIN_DIR/lockstep (or `program`, if its first word has a slash) with this
  /// process's environment and `variables`.
  explicit Launched(const std::vector<std::string>& words,
                    const std::map<std::string, std::string>& variables = {},
                    Group group = Group::kTests);
  ~Launched();  ///< Kills it if it still runs.

  /// Exit code, or 128 + signal. -1 if it did not end in time; it runs on.
  int wait(std::chrono::seconds limit = std::chrono::seconds(60));

  void send(int signal) const;
  pid_t pid() const { return pid_; }

  std::string out() const { return text(out_); }
  std::string err() const { return text(err_); }

  /// True once stdout and stderr together contain `what` `times` times.
  bool wait_for(const std::string& what, int times = 1,
                std::chrono::seconds limit = std::chrono::seconds(60)) const;

  /// Live processes with this run's mark in their environment: the launcher, its workers and
  /// theirs.
  std::vector<pid_t> alive() const;
  bool wait_all_gone(std::chrono::seconds limit = std::chrono::seconds(60)) const;

 private:
  struct Captured {
    mutable Mutex mutex;
    std::string text LOCKSTEP_GUARDED_BY(mutex);
    std::thread reader;
  };
  static std::string text(const Captured& captured);
  static void read_all(const UniqueFd& fd, Captured* captured);

  std::string mark_;
  pid_t pid_ = -1;
  int ended_ = -1;
  Captured out_;
  Captured err_;
};

/// "run --nproc_per_node N OPTIONS -- sh -c SCRIPT".
inline std::vector<std::string> shell(int ranks, const std::string& script,
                                      const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"run", "--nproc_per_node", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  for (const char* word : {"--", "/bin/sh", "-c"}) words.emplace_back(word);
  words.push_back(script);
  return words;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// How often `part` is in `text`.
inline int times_in(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Lines of `text`, without a last empty one.
std::vector<std::string> lines_of(const std::string& text);

/// Waits until `folder` has `count` records of runs, which outlive their agents.
void await_records(const std::filesystem::path& folder, int count);

/// Path of a program built with the tests.
std::string built_program(const std::string& name);

}  // namespace lockstep::testing
