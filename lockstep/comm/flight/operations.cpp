#include "lockstep/comm/flight/operations.h"

#include <algorithm>

#include "lockstep/base/literals.h"
#include "lockstep/comm/flight/diagnostics_thread.h"
#include "lockstep/comm/flight/process_state.h"
#include "lockstep/comm/topology.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kOneQuestion = 1s;  // limit of a store request

Deadline store_limit() {
  return Deadline::after(kOneQuestion);
}

std::string told_prefix(const GroupSpec& spec, const std::string& token) {
  return spec.name + "/now/" + token + "/";
}

void append(RankOperations& operations, RankOperations more) {
  operations.last.insert(operations.last.end(), more.last.begin(), more.last.end());
  operations.calls.insert(operations.calls.end(), more.calls.begin(), more.calls.end());
}

std::string encode(const RankOperations& operations) {
  return encode_last_calls(operations.last) + "\n" + encode_rank_calls(operations.calls);
}

/// Errors: kCorrupt.
RankOperations decode(const std::string& text) {
  const size_t line = std::min(text.find('\n'), text.size() - 1);
  return {decode_last_calls(text.substr(0, line)), decode_rank_calls(text.substr(line + 1))};
}

}  // namespace

RankOperations operations_here(const GroupSpec& spec) {
  const auto records = records_here(spec);
  RankOperations operations{last_calls_in(records, spec), {}};
  for (const FlightRecord& record : records) {
    operations.calls.push_back(calls_of(record, process_state(record.pid, record.pid_space)));
  }
  return operations;
}

RankOperations operations_of_all(const GroupSpec& spec, const std::string& token,
                                 std::chrono::milliseconds patience) {
  RankOperations operations = operations_here(spec);
  const Topology topology = make_topology(spec.host_ids);
  const int own = topology.host_of[static_cast<size_t>(spec.rank)];
  for (int host = 0; host < topology.num_hosts(); ++host) {
    if (host != own) DiagnosticsThread::ask_to_look(spec, host, token, store_limit());
  }
  const auto limit = Deadline::after(patience);
  uint64_t version = 0;
  for (int silent = topology.num_hosts() - 1; silent > 0 && !limit.passed();) {
    const auto told = spec.store->watch(told_prefix(spec, token), version, limit);
    version = told.version;
    for (const auto& [key, value] : told.changes) {
      if (!value) continue;
      append(operations, decode(*value));
      --silent;
    }
  }
  return operations;
}

void write_operations(const GroupSpec& spec, const std::string& token) {
  const int host = make_topology(spec.host_ids).host_of[static_cast<size_t>(spec.rank)];
  const auto key = told_prefix(spec, token) + std::to_string(host);
  // If two ranks of a host report, the first counts.
  spec.store->compare_set(key, std::nullopt, encode(operations_here(spec)), store_limit());
}

void remove_operations(const GroupSpec& spec, const std::string& token) {
  DiagnosticsThread::take_back(spec, token, store_limit());
  for (const auto& key : spec.store->list(told_prefix(spec, token), store_limit()))
    spec.store->erase(key, store_limit());
}

}  // namespace lockstep::inline internal
