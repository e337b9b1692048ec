#include "lockstep/launch/job/failure.h"

#include <fmt/format.h>

#include <csignal>
#include <limits>

#include "lockstep/base/text.h"
#include "lockstep/launch/job/json_members.h"

namespace lockstep::inline internal {
namespace {

/// Longest report; a longer one is refused without parsing.
constexpr size_t kMaxReport = 1 << 18;

constexpr auto kFailureMembers = [](auto& m, auto& failure) {
  constexpr int kAnyInt = std::numeric_limits<int>::max();
  m.number("node_rank", failure.node_rank, 0, kAnyInt);
  m.text("host", failure.host, kMaxReport);
  m.number("rank", failure.rank, -1, kAnyInt);
  m.number("pid", failure.pid, 0, kAnyInt);
  m.number("code", failure.status.code, 0, 255);
  m.number("signal", failure.status.signal, 0, 127);
  m.real("seconds", failure.seconds);
  m.text("cause", failure.cause, kMaxReport);
  m.text("log_dir", failure.log_dir, kMaxReport);
  m.texts("stderr_tail", failure.stderr_tail, kMaxReport);
  m.number("steps", failure.steps, 0, 2);
};

std::string facts(const Failure& failure, int num_nodes, const char* did) {
  const std::string place =
      num_nodes > 1 ? fmt::format("host {}, {}", failure.node_rank, failure.host) : failure.host;
  return fmt::format("rank {} ({}) {}: {} after {:.{}f} s", failure.rank, place, did,
                     describe(failure.status), failure.seconds, failure.seconds < 10 ? 2 : 0);
}

/// `line` without surrounding white space, short enough for a summary.
std::string short_form(std::string_view line) {
  constexpr size_t kMost = 300;
  return shortened(trimmed(line, " \t\r"), kMost);
}

/// ": WHY" in one line: the first line of the worker's error file, else its last on stderr.
/// Empty: there is neither. After SIGKILL it has none from stderr: the worker had no time for one.
std::string own_words(const Failure& failure) {
  std::string why = short_form(first_line(failure.cause));
  if (failure.status.signal == SIGKILL) return why.empty() ? "" : ": " + why;
  const auto& tail = failure.stderr_tail;
  for (auto line = tail.rbegin(); why.empty() && line != tail.rend(); ++line) {
    why = short_form(*line);
  }
  return why.empty() ? "" : ": " + why;
}

}  // namespace

Failure host_failure(const JobAssignment& assignment, const ExitStatus& status,
                     const std::string& what) {
  Failure failure;
  failure.node_rank = assignment.node_rank;
  failure.host = assignment.host;
  failure.status = status;
  failure.cause = fmt::format("host {} ({}): {}", failure.node_rank, failure.host, what);
  return failure;
}

std::string to_json(const Failure& failure) {
  return json_of(failure, kFailureMembers);
}

Failure failure_from_json(const std::string& text) {
  return read_message<Failure>(text, kMaxReport, "failure report of an agent", kFailureMembers);
}

std::string failure_line(const Failure& failure, int num_nodes) {
  if (failure.rank < 0) return failure.cause;
  return facts(failure, num_nodes, "failed") + own_words(failure);
}

std::string failure_words(const Failure& failure) {
  if (failure.rank < 0) return short_form(first_line(failure.cause));
  return fmt::format("rank {}{}", failure.rank, own_words(failure));
}

std::string report_text(const Failure& failure, int num_nodes, bool shown) {
  if (failure.rank < 0) return "lockstep run: " + failure.cause;
  std::string text = "lockstep run: " + facts(failure, num_nodes, "failed first");
  if (failure.status.signal == SIGKILL)
    text += " (killed from outside, or out of memory: see the kernel's log)";
  text += own_words(failure);
  for (const std::string& line : split(failure.cause, '\n')) {
    if (!line.empty()) text += "\n  " + line;
  }
  if (!failure.log_dir.empty()) text += fmt::format("\n  its output: {}", failure.log_dir);
  if (shown && !failure.stderr_tail.empty()) return text + "\n  the end of its stderr is above";
  if (!failure.stderr_tail.empty()) {
    text += "\n  end of its stderr:";
  } else if (failure.cause.empty()) {
    text += "\n  nothing on its stderr";
  }
  for (const std::string& line : failure.stderr_tail) text += "\n    " + line;
  return text;
}

}  // namespace lockstep::inline internal
