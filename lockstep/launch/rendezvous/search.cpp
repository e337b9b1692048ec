#include "lockstep/launch/rendezvous/search.h"

#include <algorithm>

#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);

/// As many as can precede an agent in its assignment, and the server.
constexpr size_t kMaxOthers = kMaxSuccessors + 1;

bool holds(const std::vector<Endpoint>& endpoints, const Endpoint& endpoint) {
  return std::any_of(endpoints.begin(), endpoints.end(), [&](const Endpoint& each) {
    return each.host == endpoint.host && each.port == endpoint.port;
  });
}

}  // namespace

EndpointSearch::EndpointSearch(std::vector<Endpoint> endpoints, Endpoint own, std::string secret,
                               Wire wire, std::string run_id)
    : endpoints_(std::move(endpoints)),
      own_(std::move(own)),
      secret_(std::move(secret)),
      wire_(wire),
      run_id_(std::move(run_id)),
      thread_(start_thread_with_signals_blocked([this] { run(); })) {}

EndpointSearch::~EndpointSearch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void EndpointSearch::run() {
  while (!stopping_) {
    look_at_all();
    MutexLock lock(mutex_);
    if (!stopping_) stopped_.wait_until(lock, Deadline::after(kEvery).when());
  }
}

std::optional<Endpoint> EndpointSearch::they_run() const {
  const int index = they_run_;
  if (index < 0) return std::nullopt;
  return endpoints_[static_cast<size_t>(index)];
}

void EndpointSearch::look_at_all() {
  for (size_t i = 0; i < endpoints_.size() && !stopping_; ++i) {
    try {
      if (look(endpoints_[i])) they_run_ = static_cast<int>(i);
    } catch (const Error&) {
      // No agent of ours is there, or not yet.
    }
  }
}

/// Whether our agents should go there.
bool EndpointSearch::look(const Endpoint& endpoint) {
  const auto soon = Deadline::after(kEvery);
  if (!somebody_listens(endpoint, soon)) return false;
  const auto store = connect_tcp_store(endpoint, secret_, soon, wire_);
  const auto job = store->try_get(keys::kJob, soon);
  if (!job || !keys::is_same_job(*job, run_id_)) return false;
  const auto text = store->try_get(keys::kRecord, soon);
  if (!text) return false;
  const JobRecord::State state = job_record_from_json(*text).state;
  if (state == JobRecord::State::kEnded) return false;
  if (state == JobRecord::State::kRunning || !we_run_) return true;
  store->set(keys::kMoved, to_string(own_), soon);
  return false;
}

void OtherEndpoints::remember(const RendezvousBackend::Candidates& candidates,
                              const Endpoint& own) {
  const size_t before = std::min(candidates.own, candidates.in_order.size());
  for (size_t i = 0; i < before; ++i) {
    const Endpoint& endpoint = candidates.in_order[i];
    if (to_string(endpoint) != to_string(own) && !holds(endpoints_, endpoint))
      endpoints_.push_back(endpoint);
  }
  if (endpoints_.size() > kMaxOthers) endpoints_.resize(kMaxOthers);
}

void OtherEndpoints::forget(const std::vector<Endpoint>& here) {
  std::erase_if(endpoints_, [&](const Endpoint& endpoint) { return holds(here, endpoint); });
}

std::optional<Endpoint> OtherEndpoints::look(const Endpoint& endpoint, const Endpoint& own,
                                             bool we_run) {
  if (!search_) {
    std::vector<Endpoint> endpoints = endpoints_;
    if (!holds(endpoints, endpoint)) endpoints.insert(endpoints.begin(), endpoint);
    search_.emplace(std::move(endpoints), own, secret_, wire_, run_id_);
  }
  search_->we_run(we_run);
  auto they = search_->they_run();
  // The result may name an agent that has come here since.
  if (they && (holds(endpoints_, *they) || to_string(*they) == to_string(endpoint))) return they;
  return std::nullopt;
}

}  // namespace lockstep::inline internal
