#pragma once
// Agents of one job: real processes on one host, each with a host id of its own.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/launch/launched.h"
#include "tests/support/held_port.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

/// Prints its place, and then runs until it is ended.
inline const Words kSleeper = {
    "/bin/sh", "-c",
    "echo world $WORLD_SIZE rank $RANK restart $TORCHELASTIC_RESTART_COUNT.; exec sleep 600"};

/// Silence until an agent is given up: for jobs in which one is stopped.
inline constexpr char kTwoSeconds[] = "keep_alive_max_attempt=10";
/// For all others: an agent that lives counts as alive, however slow this machine is.
inline constexpr char kTenSeconds[] = "keep_alive_max_attempt=50";

/// The agents of a job that meet at a port of this host.
class ElasticJob {
 public:
  /// At a port of this host, which one of them serves.
  explicit ElasticJob(std::string nodes, Words options = {}, std::string silence = kTenSeconds)
      : nodes_(std::move(nodes)), options_(std::move(options)), silence_(std::move(silence)) {
    port_.emplace();
    flags_ = {"--rdzv_backend", "c10d", "--rdzv_endpoint",
              "127.0.0.1:" + std::to_string(port_->number())};
  }
  /// With another backend.
  ElasticJob(std::string nodes, Words options, const std::string& backend,
             const std::string& endpoint, std::string silence = kTwoSeconds)
      : nodes_(std::move(nodes)), options_(std::move(options)), silence_(std::move(silence)) {
    flags_ = {"--rdzv_backend", backend, "--rdzv_endpoint", endpoint, "--local_addr", "127.0.0.1"};
  }

  /// The built-in backend's port.
  int port() const { return port_->number(); }

  /// An agent that leads begins with MIN nodes at once.
  std::unique_ptr<Launched> first(const std::string& host, const Words& command = kSleeper) const {
    return begin("0", host, command);
  }
  /// An agent that leads waits for all expected nodes, longer than any test runs.
  std::unique_ptr<Launched> agent(const std::string& host, const Words& command = kSleeper,
                                  const Words& options = {}, const std::string& secret = "") const {
    return begin("600", host, command, options, secret);
  }

 private:
  std::unique_ptr<Launched> begin(const std::string& last_call, const std::string& host,
                                  const Words& command = kSleeper, const Words& options = {},
                                  const std::string& secret = "") const {
    Words words = {"run", "--nnodes", nodes_, "--rdzv_conf",
                   "last_call_timeout=" + last_call + "," + silence_};
    words.insert(words.end(), flags_.begin(), flags_.end());
    words.insert(words.end(), options_.begin(), options_.end());
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return std::make_unique<Launched>(
        words, std::map<std::string, std::string>{{"LOCKSTEP_HOST_ID", host},
                                                  {"LOCKSTEP_SECRET", secret}});
  }

  std::optional<HeldPort> port_;
  Words flags_;
  const std::string nodes_;
  const Words options_;
  const std::string silence_;
};

inline std::string text_of(const Launched& run) {
  return run.out() + run.err();
}

#define EXPECT_SAYS(run, ...) EXPECT_TRUE((run)->wait_for(__VA_ARGS__)) << text_of(*(run))

}  // namespace lockstep::testing
