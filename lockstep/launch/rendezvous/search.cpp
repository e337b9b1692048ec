#include "lockstep/launch/rendezvous/search.h"

#include "lockstep/base/quiet_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/plan.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);

}  // namespace

EndpointSearch::EndpointSearch(std::vector<Endpoint> places, Endpoint own, std::string secret,
                               Wire wire, std::string run_id)
    : places_(std::move(places)),
      own_(std::move(own)),
      secret_(std::move(secret)),
      wire_(wire),
      run_id_(std::move(run_id)),
      thread_(start_quiet_thread([this] { run(); })) {}

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
  return places_[static_cast<size_t>(index)];
}

void EndpointSearch::look_at_all() {
  for (size_t i = 0; i < places_.size() && !stopping_; ++i) {
    try {
      if (look(places_[i])) they_run_ = static_cast<int>(i);
    } catch (const Error&) {
      // Nobody of ours is there, or not yet.
    }
  }
}

/// Whether ours should go there.
bool EndpointSearch::look(const Endpoint& place) {
  const auto soon = Deadline::after(kEvery);
  if (!somebody_listens(place, soon)) return false;
  const auto store = connect_tcp_store(place, secret_, soon, wire_);
  const auto job = store->try_get(keys::kJob, soon);
  if (!job || (!job->empty() && !run_id_.empty() && *job != run_id_)) return false;
  const auto text = store->try_get(keys::kRecord, soon);
  if (!text) return false;
  const JobRecord::State state = job_record_from_json(*text).state;
  if (state == JobRecord::State::kEnded) return false;
  if (state == JobRecord::State::kRunning || !we_run_) return true;
  store->set(keys::kMoved, to_string(own_), soon);
  return false;
}

}  // namespace lockstep
