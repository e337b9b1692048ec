#include "lockstep/world/decision.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/addresses.h"
#include "lockstep/base/file.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/munge_library.h"
#include "lockstep/world/bootstrap/pmix_library.h"
#include "lockstep/world/detect/compare.h"
#include "lockstep/world/meeting_plan.h"
#include "lockstep/world/secret.h"

namespace lockstep {
namespace {

constexpr const char* kArguments = "arguments";

/// `wanted`: the only one that is read; empty: all are. `notes`: what sources say that are not this
/// process's launcher after all.
std::vector<Finding> look_at_sources(const Inputs& inputs, const std::string& wanted,
                                     std::vector<std::string>* notes) {
  std::vector<Finding> findings;
  for (const Source& source : sources()) {
    const Reader read(inputs);
    const bool here = std::any_of(source.signs.begin(), source.signs.end(),
                                  [&](const char* sign) { return read.text(sign).has_value(); });
    if (!here) continue;
    Finding finding;
    finding.source = &source;
    if (!wanted.empty() && wanted != source.name) {
      finding.passed_over = wanted == kArguments ? "not asked: the program gives its rank itself"
                                                 : "not asked: LOCKSTEP_LAUNCHER names another";
      findings.push_back(std::move(finding));
      continue;
    }
    try {
      finding.identity = source.read(read);
      if (finding.identity) finding.identity->launcher = source.name;
    } catch (const Error& error) {
      finding.problem = error.what();
    }
    finding.variables = read.used();
    notes->insert(notes->end(), read.notes().begin(), read.notes().end());
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// LOCKSTEP_LAUNCHER; empty when it is not set. Errors: kInvalidArgument.
std::string wanted_source(const Reader& read) {
  const auto wanted = read.text("LOCKSTEP_LAUNCHER");
  if (!wanted) return "";
  std::vector<std::string> known;
  for (const Source& source : sources()) known.emplace_back(source.name);
  known.emplace_back("none");
  if (std::find(known.begin(), known.end(), *wanted) != known.end()) return *wanted;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("environment variable LOCKSTEP_LAUNCHER: '{}' is not one of {}{}",
                          *wanted, fmt::join(known, ", "), did_you_mean(*wanted, known)));
}

bool is_typed_below(const std::string& process) {
  const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  return terminal && process != std::to_string(::getpid());
}

Identity named_source(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.source->name != name) continue;
    if (finding.identity) return *finding.identity;
    if (!finding.problem.empty()) throw Error(ErrorCode::kInvalidArgument, finding.problem);
  }
  for (const Source& source : sources()) {
    if (source.name != name) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("LOCKSTEP_LAUNCHER={}, but this process was not started by it: none of "
                            "{} tells a rank",
                            name, fmt::join(source.signs, ", ")));
  }
  return {};  // none
}

/// The first that is complete. What our own agent says is never passed over for a lack of it.
Finding* first_complete(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (finding.identity) return &finding;
    if (!finding.problem.empty() && finding.source == &sources().front()) return nullptr;
  }
  return nullptr;
}

/// Compares the others with `chosen`, and says why each does not count.
void compare_others(Finding& chosen, Decision* decision) {
  for (Finding& other : decision->findings) {
    if (&other == &chosen) continue;
    if (!other.identity) {
      if (!other.problem.empty() && !is_around_agent(chosen, other)) {
        decision->warnings.push_back(fmt::format("launcher is {}; passed over {}: {}",
                                                 chosen.source->name, other.source->name,
                                                 other.problem));
      }
      continue;
    }
    other.passed_over = why_no_conflict(chosen, other);
    if (!other.passed_over.empty()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("two launchers set this process's environment: {} says {} ({}); {} "
                            "says {} ({}). Unset one's variables, or set LOCKSTEP_LAUNCHER to {} "
                            "or {}",
                            chosen.source->name, describe(*chosen.identity),
                            fmt::join(chosen.source->signs, ", "), other.source->name,
                            describe(*other.identity), fmt::join(other.source->signs, ", "),
                            chosen.source->name, other.source->name));
  }
}

Identity choose(Decision* decision, const std::vector<std::string>& notes) {
  Finding* chosen = first_complete(decision->findings);
  if (chosen == nullptr) {
    for (const Finding& finding : decision->findings) {
      if (!finding.problem.empty()) throw Error(ErrorCode::kInvalidArgument, finding.problem);
    }
    decision->why = "no launcher's variables are set";
    decision->warnings = notes;  // of no interest where another launcher started this process
    return {};
  }
  chosen = innermost(decision->findings, chosen);
  compare_others(*chosen, decision);
  decision->why = "first by precedence of the sources that tell rank and size";
  return refined(*chosen, decision->findings);
}

}  // namespace

Decision decide(const Inputs& inputs) {
  Decision decision;
  try {
    const Reader read(inputs);
    std::vector<std::string> notes;
    const std::string wanted = wanted_source(read);
    decision.findings = look_at_sources(inputs, wanted, &notes);
    if (wanted.empty()) {
      decision.identity = choose(&decision, notes);
    } else {
      decision.identity = named_source(decision.findings, wanted);
      decision.why = "LOCKSTEP_LAUNCHER names it";
    }
    plan_meeting(read, &decision.identity, &decision.warnings);
  } catch (const Error& error) {
    decision.problem = error.what();
  }
  return decision;
}

Decision decide(const RankArguments& arguments, const Inputs& inputs) {
  Decision decision;
  try {
    const Reader read(inputs);
    std::vector<std::string> notes;
    decision.findings = look_at_sources(inputs, kArguments, &notes);
    decision.identity = identity_of(arguments, read);
    decision.why = "the program gives its rank itself";
    plan_meeting(read, &decision.identity, &decision.warnings);
  } catch (const Error& error) {
    decision.problem = error.what();
  }
  return decision;
}

Inputs inputs_from(const Environment& variables) {
  return {variables,        [](const std::string& path) { return read_file(path, 64 << 20); },
          read_secret_file, ask_pmix_server,
          is_own_address,   is_typed_below,
          can_resolve,      munge_answers,
          why_no_munge};
}

}  // namespace lockstep
