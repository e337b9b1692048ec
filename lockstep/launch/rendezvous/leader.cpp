#include "lockstep/launch/rendezvous/leader.h"

#include <fmt/format.h>

#include "lockstep/base/log.h"
#include "lockstep/launch/job/json_members.h"
#include "lockstep/launch/rendezvous/keys.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kWriteLimit = std::chrono::seconds(10);
/// Fewer agents need not learn their number: their heartbeats are no burden.
constexpr int64_t kManyAgents = 1024;
constexpr size_t kMaxRefusal = 8192;

struct Refusal {
  bool usage = false;  ///< The agent was started wrongly; else another is in its way.
  std::string why;
};

constexpr auto kRefusalMembers = [](auto& m, auto& refusal) {
  m.number("usage", refusal.usage, 0, 1);
  m.text("why", refusal.why, kMaxRefusal / 2);
};

/// Nothing if an agent's text is invalid.
template <class Read>
auto read(const KeyValueStore::Change& change, const Read& from_json)
    -> std::optional<decltype(from_json(*change.value))> {
  try {
    return from_json(*change.value);
  } catch (const Error& error) {
    log_warn(fmt::format("{} is left out: {}", change.key, error.what()));
    return std::nullopt;
  }
}

std::optional<JoinRequest> read_join_request(const KeyValueStore::Change& change) {
  return read(change, [](const std::string& text) { return join_request_from_json(text); });
}

std::optional<Failure> read_failure(const KeyValueStore::Change& change) {
  return read(change, [](const std::string& text) { return failure_from_json(text); });
}

bool is_join_request(const KeyValueStore::Change& change) {
  return change.key.starts_with(keys::kAgents);
}

}  // namespace

Leader::Leader(std::shared_ptr<KeyValueStore> store, MembershipRules rules)
    : store_(std::move(store)),
      state_(begin_membership(std::move(rules), std::chrono::steady_clock::now())) {}

void Leader::begin(const std::vector<KeyValueStore::Change>& all) {
  int here = 0;
  bool goes_on = false;
  for (const auto& change : all) {
    if (!is_join_request(change) || !change.value) continue;
    const auto request = read_join_request(change);
    if (!request) continue;
    ++here;
    goes_on = goes_on || request->generation > 0;
  }
  if (!goes_on) clear();
  if (goes_on) state_.expected_hosts = here;
  const int64_t reported = agents_reported_;
  for (const auto& change : all) {
    if (is_join_request(change)) take_one(change);
  }
  if (agents_reported_ == reported) act(PublishRecord{record_of(state_)});
}

/// No agent of an earlier job is left.
void Leader::clear() {
  const auto soon = Deadline::after(kWriteLimit);
  for (const auto& prefix : {keys::kAssignments, keys::kFailures, keys::kRefused, keys::kMoved}) {
    for (const auto& key : store_->list(prefix, soon)) store_->erase(key, soon);
  }
}

void Leader::take(const std::vector<KeyValueStore::Change>& changes) {
  // A failure is in a later key than the ends of its workers, and explains them.
  std::vector<AgentHere> gone;
  for (const auto& change : changes) {
    if (!is_join_request(change) || !change.value) {
      take_one(change);
      continue;
    }
    auto request = read_join_request(change);
    if (!request) continue;
    AgentHere here{change.key.substr(keys::kAgents.size()), std::move(*request)};
    if (here.request.work == HostWork::kIdle && here.request.leaving == 0) {
      gone.push_back(std::move(here));
    } else {
      dispatch(here);
    }
  }
  for (const auto& here : gone) dispatch(here);
}

void Leader::take_one(const KeyValueStore::Change& change) {
  if (is_join_request(change)) {
    const std::string id = change.key.substr(keys::kAgents.size());
    if (!change.value) return dispatch(AgentLost{id});
    if (auto request = read_join_request(change)) dispatch(AgentHere{id, std::move(*request)});
  } else if (change.value && change.key == keys::failure(state_.generation)) {
    if (auto failure = read_failure(change)) {
      dispatch(WorkersFailed{state_.generation, std::move(*failure)});
    }
  }
}

void Leader::look_at_clock() {
  const auto at = next_look();
  if (at && std::chrono::steady_clock::now() >= *at) dispatch(JobTimePassed{});
}

void Leader::dispatch(const MemberEvent& event) {
  for (const MemberAction& action : advance(&state_, event, std::chrono::steady_clock::now())) {
    std::visit([this](const auto& each) { act(each); }, action);
  }
  const auto here = static_cast<int64_t>(state_.agents.size());
  if (here > kManyAgents && here > 2 * agents_reported_) act(PublishRecord{record_of(state_)});
}

void Leader::act(const PublishAssignments& action) {
  std::vector<KeyValueStore::KeyValue> items;
  for (const auto& [id, assignment] : action.assignments) {
    items.push_back({keys::assignment(id), to_json(assignment)});
  }
  store_->set_many(items, Deadline::after(kWriteLimit));
}

void Leader::act(const PublishRecord& action) {
  JobRecord record = action.record;
  record.by = state_.rules.term;
  agents_reported_ = std::max<int64_t>(record.num_agents, 1);
  store_->set(keys::kRecord, to_json(record), Deadline::after(kWriteLimit));
}

void Leader::act(const RefuseAgent& action) {
  store_->set(keys::refused(action.id), to_json(action), Deadline::after(kWriteLimit));
}

std::string to_json(const RefuseAgent& refusal) {
  return json_of(Refusal{refusal.code == ErrorCode::kInvalidArgument, refusal.why},
                 kRefusalMembers);
}

Error refusal_from_json(std::string_view text) {
  const auto refusal = read_message<Refusal>(text, kMaxRefusal, "a refusal", kRefusalMembers);
  return {refusal.usage ? ErrorCode::kInvalidArgument : ErrorCode::kMismatch, refusal.why};
}

}  // namespace lockstep::inline internal
