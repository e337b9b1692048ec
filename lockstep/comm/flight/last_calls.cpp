#include "lockstep/comm/flight/last_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/base/clock.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/flight/diagnostics_thread.h"
#include "lockstep/comm/flight/process_state.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/flight/stack.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/rank_answers.h"
#include "lockstep/comm/topology.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::json;

constexpr auto kLookTime = 10ms;
constexpr auto kLastOfTheLost = 20ms;
constexpr auto kStack = 250ms;    // to look at one stack
constexpr auto kQuiet = 300ms;    // without an answer of another host
constexpr auto kHosts = 500ms;    // for hosts that have not begun to answer
constexpr auto kAtWork = 3s;      // for hosts that have begun: stacks take long on a busy machine
constexpr size_t kStacks = 2;     // per host
constexpr size_t kMostTold = 16;  // groups of ranks with different operations
constexpr size_t kMostStacks = 8;

bool did_the_same(const LastCall& a, const LastCall& b) {
  return a.what == b.what && a.inside == b.inside && a.process == b.process;
}

std::string phrase(const LastCall& call, const std::vector<int>& ranks) {
  std::string text = rank_words(ranks);
  if (!call.process.empty()) text += fmt::format(" ({})", call.process);
  if (call.what.empty()) return text + ": nothing yet";
  return text + (call.inside ? fmt::format(": in {} for {:.1f} s", call.what, call.seconds)
                             : fmt::format(": done with {} {:.1f} s ago", call.what, call.seconds));
}

std::string stacks_of(const std::vector<LastCall>& calls) {
  std::string text;
  size_t count = 0;
  for (const LastCall& call : calls) {
    if (call.stack.empty() || ++count > kMostStacks) continue;
    text += fmt::format("; stack of rank {}: {}", call.rank, call.stack);
  }
  if (count > kMostStacks) text += fmt::format("; and {} more stacks", count - kMostStacks);
  return text;
}

/// By read(2), not from mapped memory: the writer may be active, and in another process.
std::optional<FlightRecord> read_recorder(const std::shared_ptr<const UniqueFd>& recorder) {
  if (!recorder) return std::nullopt;
  std::vector<std::byte> bytes(sizeof(FlightMemory));
  const ssize_t got = ::pread(recorder->get(), bytes.data(), bytes.size(), 0);
  if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
  try {
    return read_flight(bytes, "a flight recorder");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// A rank that is not waiting in an operation.
bool is_elsewhere(const LastCall& call) {
  return !call.process.empty() && call.process != "dead";
}

/// `with_stacks`: for ranks elsewhere; then only one rank of a host may call it at a time.
std::vector<LastCall> calls_in(const std::vector<FlightRecord>& records, const GroupSpec& spec,
                               bool with_stacks) {
  const auto process_of = [](const FlightRecord& record) {
    return std::pair(record.pid_space, record.pid);
  };
  std::map<std::pair<uint64_t, int>, int> ranks_in;  // by process
  for (const FlightRecord& record : records) ++ranks_in[process_of(record)];
  std::vector<LastCall> calls;
  size_t stacks = 0;
  for (const FlightRecord& record : records) {
    LastCall call = last_call(record, spec.name, ns_since_1970());
    const std::string state = process_state(record.pid, record.pid_space);
    const bool usual = call.inside && (state == "sleeping" || state == "running");
    if (!usual) call.process = state;
    // If ranks are threads, the main thread is none of them. One without a state counts as usual.
    const bool is_main = ranks_in[process_of(record)] == 1;
    if (with_stacks && is_main && is_elsewhere(call) && stacks++ < kStacks) {
      const bool own = record.pid == ::getpid();
      call.stack = to_string(own ? own_stack(kStack) : stack_of(record.pid, kStack));
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<LastCall> last_calls_of_host(const GroupSpec& spec, bool with_stacks) {
  return calls_in(records_here(spec), spec, with_stacks);
}

Deadline soon() {
  return Deadline::after(kDiagnosticsStoreLimit);
}

bool comes_first(const GroupSpec& spec, const std::string& key) {
  return spec.store->compare_set(key, std::nullopt, "", soon()).swapped;
}

/// Set by the rank that begins to report for `host`.
std::string begun_key(const GroupSpec& spec, int host) {
  return fmt::format("{}/last/of/{}", spec.name, host);
}

std::string key_of_host(const GroupSpec& spec, int host) {
  return fmt::format("{}/last/{}", spec.name, host);
}

/// True if this rank reported, and not another rank of the host.
bool tell(const GroupSpec& spec, const Topology& topology, bool with_stacks) {
  const int host = topology.host_of[static_cast<size_t>(spec.rank)];
  if (!comes_first(spec, begun_key(spec, host))) return false;
  const auto calls = last_calls_of_host(spec, with_stacks);
  spec.store->set(key_of_host(spec, host), encode_last_calls(calls), soon());
  return true;
}

/// One rank's share in a report by all ranks.
class Reporting {
 public:
  using Explain = std::function<Error(const Error& error)>;
  Reporting(const GroupSpec& spec, const Error& error, const Explain& explain)
      : spec_(spec), error_(error), explain_(explain), topology_(make_topology(spec.host_ids)) {}

  Error agreed() {
    const bool tells = tell(spec_, topology_, with_stacks());
    const bool several = topology_.num_hosts() > 1;
    if (several ? comes_first(spec_, spec_.name + "/last/by") : tells) {
      await_hosts();
    } else if (const auto text = report()) {
      return decode_group_error(*text);
    }
    return agree_on(told_by_hosts());
  }

 private:
  bool with_stacks() const { return error_.code() == ErrorCode::kTimeout; }
  std::string host_key(int host) const { return key_of_host(spec_, host); }
  std::string report_key() const { return spec_.name + "/report"; }

  /// The group error with this report, unless another rank was first: then that rank's.
  Error agree_on(const std::vector<LastCall>& calls) {
    const Error cause = explain_ ? explain_(error_) : error_;
    const Error full(cause.code(),
                     cause.what() + (kLastOperations + last_calls_text(calls, spec_.world_ranks)));
    const auto swap =
        spec_.store->compare_set(report_key(), std::nullopt, encode_group_error(full), soon());
    return !swap.swapped && swap.value ? decode_group_error(*swap.value) : full;
  }

  std::optional<std::string> report() {
    try {
      return spec_.store->get(report_key(), Deadline::after(kAtWork + kDiagnosticsStoreLimit));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      return std::nullopt;
    }
  }

  void await_hosts() {
    // No rank can report for a rank that died alone on its host.
    const auto for_one = error_.code() == ErrorCode::kPeerLost ? kLastOfTheLost : kQuiet;
    const auto over = Deadline::after(kAtWork);
    const auto end = Deadline::after(kHosts);
    auto quiet = end;
    // If each look takes long, the machine is busy: hosts get half the looks that a calm machine
    // would give them.
    int fewest_looks = 0;
    size_t before = 0;
    for (int looks = 0;; ++looks) {
      const auto missing = silent_hosts();
      if (looks == 1) ask(missing);
      if (missing.empty() || over.passed()) return;
      const bool enough = looks >= fewest_looks && (end.passed() || quiet.passed());
      if (enough && !any_has_begun(missing)) return;
      if (missing.size() != before) {
        const auto patience = missing.size() == 1 ? for_one : kQuiet;
        quiet = Deadline::after(patience);
        fewest_looks = looks + static_cast<int>(patience / kLookTime / 2);
      }
      before = missing.size();
      exist_within(*spec_.store, keys_of(missing), Deadline::after(kLookTime));
    }
  }

  std::vector<int> silent_hosts() {
    std::vector<int> silent;
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto key = host_key(host);
      if (!spec_.store->check(std::span(&key, 1), soon())) silent.push_back(host);
    }
    return silent;
  }

  bool any_has_begun(const std::vector<int>& hosts) const {
    return std::any_of(hosts.begin(), hosts.end(), [this](int host) {
      const auto key = begun_key(spec_, host);
      return spec_.store->check(std::span(&key, 1), soon());
    });
  }

  std::vector<std::string> keys_of(const std::vector<int>& hosts) const {
    std::vector<std::string> keys;
    for (const int host : hosts) keys.push_back(host_key(host));
    return keys;
  }

  void ask(const std::vector<int>& hosts) {
    for (const int host : hosts) DiagnosticsThread::ask(spec_, host, with_stacks(), soon());
  }

  std::vector<LastCall> told_by_hosts() {
    std::vector<LastCall> calls;
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto text = spec_.store->try_get(host_key(host), soon());
      const bool own = host == topology_.host_of[static_cast<size_t>(spec_.rank)];
      if (!text && !own) continue;
      // The rank that reports for this host may have died before it finished.
      const auto theirs = text ? decode_last_calls(*text) : last_calls_of_host(spec_, false);
      calls.insert(calls.end(), theirs.begin(), theirs.end());
    }
    return calls;
  }

  const GroupSpec& spec_;
  const Error& error_;
  const Explain& explain_;
  const Topology topology_;
};

}  // namespace

LastCall last_call(const FlightRecord& record, const std::string& name, int64_t now_ns) {
  const std::string group = recorded_name(name);
  LastCall call;
  call.rank = record.rank;
  const FlightEntry* chosen = record.entries.empty() ? nullptr : &record.entries.back();
  for (const FlightEntry& entry : record.entries) {
    if (entry.group == group) call.reached = std::max(call.reached, entry.sequence);
    if (entry.group != group || (entry.left_ns != 0 && (!entry.failed || entry.went_on))) {
      continue;
    }
    chosen = &entry;
    call.inside = true;
  }
  if (chosen == nullptr) return call;
  call.inside = call.inside || chosen->left_ns == 0;
  call.what = to_string(*chosen);
  if (chosen->group != group) call.what += " of group " + chosen->group;
  if (!chosen->site.empty()) call.what += " at " + chosen->site;
  const int64_t since = call.inside ? chosen->entered_ns : chosen->left_ns;
  call.seconds = static_cast<double>(std::max<int64_t>(now_ns - since, 0)) / 1e9;
  return call;
}

std::string last_calls_text(std::vector<LastCall> calls, const std::vector<int>& ranks) {
  std::sort(calls.begin(), calls.end(),
            [](const LastCall& a, const LastCall& b) { return a.rank < b.rank; });
  std::vector<int> silent = ranks;
  for (const LastCall& call : calls) std::erase(silent, call.rank);
  const std::string stacks = stacks_of(calls);
  std::string text;
  for (size_t told = 0; !calls.empty(); ++told) {
    if (told == kMostTold) {
      text += fmt::format("; and {} more ranks", calls.size());
      break;
    }
    LastCall first = calls.front();
    std::vector<int> same;
    for (const LastCall& call : calls) {
      if (!did_the_same(call, first)) continue;
      same.push_back(call.rank);
      first.seconds = std::max(first.seconds, call.seconds);
    }
    std::erase_if(calls, [&](const LastCall& call) { return did_the_same(call, first); });
    text += (text.empty() ? "" : "; ") + phrase(first, same);
  }
  if (!silent.empty()) {
    text += fmt::format("{}{}: no word", text.empty() ? "" : "; ", rank_words(silent));
  }
  return text + stacks;
}

std::string encode_last_calls(const std::vector<LastCall>& calls) {
  json list = json::array();
  for (const LastCall& call : calls)
    list.push_back(
        {call.rank, call.what, call.inside, call.seconds, call.process, call.stack, call.reached});
  return list.dump();
}

std::vector<LastCall> decode_last_calls(const std::string& text) {
  try {
    std::vector<LastCall> calls;
    for (const json& item : json::parse(text)) {
      calls.push_back({item.at(0).get<int>(), item.at(1).get<std::string>(), item.at(2).get<bool>(),
                       item.at(3).get<double>(), item.at(4).get<std::string>(),
                       item.at(5).get<std::string>(), item.at(6).get<uint64_t>()});
    }
    return calls;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                std::string("last operations of a host's ranks: ") + error.what());
  }
}

std::vector<FlightRecord> records_here(const GroupSpec& spec) {
  std::vector<FlightRecord> records;
  for (const auto& recorder : spec.recorders) {
    if (auto record = read_recorder(recorder)) records.push_back(std::move(*record));
  }
  return records;
}

std::vector<LastCall> last_calls_in(const std::vector<FlightRecord>& records,
                                    const GroupSpec& spec) {
  return calls_in(records, spec, false);
}

void tell_of_host(const GroupSpec& spec, bool with_stacks) {
  tell(spec, make_topology(spec.host_ids), with_stacks);
}

Error with_last_calls(const GroupSpec& spec, const Error& error,
                      const std::function<Error(const Error& error)>& explain) {
  if (spec.size == 1 || is_harmless(error.code())) return error;
  try {
    return Reporting(spec, error, explain).agreed();
  } catch (const std::exception& store_error) {  // no other error may replace `error`
    log_debug(fmt::format("{}: the last operations of group '{}' are of this host only: {}",
                          spec.rank_name(spec.rank), spec.name, store_error.what()));
  }
  return Error(error.code(),
               error.what() + (kLastOperations +
                               last_calls_text(last_calls_of_host(spec, false), spec.world_ranks)));
}

}  // namespace lockstep::inline internal
