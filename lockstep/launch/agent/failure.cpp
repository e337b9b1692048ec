#include "lockstep/launch/agent/failure.h"

#include <fmt/format.h>
#include <string.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string facts(const Failure& failure, int num_nodes, const char* did) {
  const std::string place =
      num_nodes > 1 ? fmt::format("node {}, {}", failure.node_rank, failure.host) : failure.host;
  return fmt::format("rank {} ({}) {}: {} after {:.{}f} s", failure.rank, place, did,
                     describe(failure.status), failure.seconds, failure.seconds < 10 ? 2 : 0);
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const ExitStatus& status) {
  return status.signal != 0 ? signal_name(status.signal) : fmt::format("exit code {}", status.code);
}

std::string to_json(const Failure& failure) {
  const nlohmann::json json = {
      {"node_rank", failure.node_rank},
      {"host", failure.host},
      {"rank", failure.rank},
      {"pid", failure.pid},
      {"code", failure.status.code},
      {"signal", failure.status.signal},
      {"seconds", failure.seconds},
      {"cause", failure.cause},
      {"log_dir", failure.log_dir},
      {"stderr_tail", failure.stderr_tail},
      {"steps", static_cast<int>(failure.steps)},
  };
  // Workers may print bytes that are no UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure failure_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Failure failure;
    json.at("node_rank").get_to(failure.node_rank);
    json.at("host").get_to(failure.host);
    json.at("rank").get_to(failure.rank);
    json.at("pid").get_to(failure.pid);
    json.at("code").get_to(failure.status.code);
    json.at("signal").get_to(failure.status.signal);
    json.at("seconds").get_to(failure.seconds);
    json.at("cause").get_to(failure.cause);
    json.at("log_dir").get_to(failure.log_dir);
    json.at("stderr_tail").get_to(failure.stderr_tail);
    const int steps = json.at("steps");
    if (steps == 1) failure.steps = Steps::kNone;
    if (steps == 2) failure.steps = Steps::kSome;
    return failure;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("failure report of an agent: {}", error.what()));
  }
}

std::string failure_line(const Failure& failure, int num_nodes) {
  return failure.rank < 0 ? failure.cause : facts(failure, num_nodes, "failed");
}

std::string report_text(const Failure& failure, int num_nodes) {
  if (failure.rank < 0) return "lockstep run: " + failure.cause;
  std::string text = "lockstep run: " + facts(failure, num_nodes, "failed first");
  if (failure.status.signal == 9) text += " (out of memory? the kernel's log says)";
  for (const std::string& line : split(failure.cause, '\n')) {
    if (!line.empty()) text += "\n  " + line;
  }
  if (!failure.log_dir.empty()) text += fmt::format("\n  its output: {}", failure.log_dir);
  text += failure.stderr_tail.empty() ? "\n  nothing on its stderr" : "\n  end of its stderr:";
  for (const std::string& line : failure.stderr_tail) text += "\n    " + line;
  return text;
}

}  // namespace lockstep
