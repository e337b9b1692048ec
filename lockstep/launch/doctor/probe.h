#pragma once
// Both ends of a probe, a program on each examined host that answers each line of JSON with one.

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/process/subprocess.h"

namespace lockstep::doctor {

/// `lockstep doctor --probe`: the doctor's part on one host. Takes requests from standard input,
/// one JSON object a line, and answers each with one on standard output. Ends with its input, or
/// after ten minutes. Listens meanwhile on the first request's ports. Returns the exit status.
///
///   {"do": "facts", "me": 0, "hosts": [...], "ports": [...], "cookie": "...", "folder": "/work",
///    "log_folder": "", "hccn_conf": ""}                {"facts": {...}}
///   {"do": "clock"}                                    {"clock": seconds since 1970}
///   {"do": "links", "targets": [{index, name, asked, port}]}   {"problems": ["", ...]}
///   {"do": "measure", "target": {...}, "seconds": 0.2} {"latency_us": 20, "gbit_s": 9.4}
///   anything that fails                                {"error": "..."}
int probe();

/// The doctor's end of one host's probe.
class ProbeLink {
 public:
  /// Starts `words`. A program that cannot be started is a problem(), not an exception.
  explicit ProbeLink(const std::vector<std::string>& words);

  /// Why it cannot be queried any more; "" while it can.
  const std::string& problem() const { return problem_; }
  void give_up(const std::string& why);
  /// Closes the probe's input, which ends the probe.
  void close();
  void wait_end(Deadline deadline) { program_->wait(deadline); }

  // For ask_all().
  void send(const std::string& line) { output_ += line; }
  bool wants_to_write() const { return problem_.empty() && !output_.empty(); }
  void write_some();
  /// Reads what is there; returns the answer once its line is complete.
  std::optional<nlohmann::json> read_some();
  const Subprocess& program() const { return *program_; }
  bool err_open() const { return err_open_; }

 private:
  void ended();

  std::optional<Subprocess> program_;
  std::string problem_;
  std::string output_, input_, errors_;
  bool err_open_ = true;
};

struct ProbeAnswer {
  nlohmann::json json;  ///< Null: none; the link's problem() has the reason.
  Deadline::Clock::time_point at;
};

/// Sends each probe its request (null: none) and waits for all answers. A probe without a valid
/// answer by the deadline is given up.
std::vector<ProbeAnswer> ask_all(std::vector<std::unique_ptr<ProbeLink>>& probes,
                                 const std::vector<nlohmann::json>& requests, Deadline deadline);

}  // namespace lockstep::doctor
