#pragma once
// The agent that the starter runs on one host: messages to it, and its lines.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/job/start_messages.h"
#include "lockstep/launch/process/line_splitter.h"
#include "lockstep/launch/process/subprocess.h"

namespace lockstep {

class StartedHost {
 public:
  /// Starts an agent on the host `name`, by `rsh` if that is another host. `self`: path of this
  /// program, there too. Errors: kNotFound (no such program here), kIo.
  StartedHost(const std::string& name, const std::string& self, const std::string& rsh);

  const std::string& name() const { return name_; }
  bool hello_received = false;

  /// Sends a line; if that fails, the agent's end shows the reason.
  void send(const std::string& line);
  void close_in() { agent_->close_in(); }
  void kill_group() const { agent_->kill_group(); }

  /// Descriptors that may still have output.
  std::vector<int> open_outputs() const;
  using TakeLine = std::function<void(int stream, const std::string& line)>;
  /// Passes on the available output of stream 1 or 2, at most 64 KiB.
  void read(int stream, const TakeLine& take);

  /// Both streams have ended, but the process may still run.
  bool is_ending() const { return !open_[0] && !open_[1] && !status_; }
  /// True once: when it has ended after its streams.
  bool poll_end();
  const std::optional<int>& status() const { return status_; }

 private:
  std::string name_;
  std::unique_ptr<Subprocess> agent_;
  LineSplitter lines_[2] = {LineSplitter{kMaxStarterLine}, LineSplitter{kMaxStarterLine}};
  bool open_[2] = {true, true};
  std::optional<int> status_;
};

}  // namespace lockstep
