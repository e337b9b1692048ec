#include "lockstep/launch/rendezvous/meeting/search.h"

#include "lockstep/base/error.h"
#include "lockstep/base/quiet_thread.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/meeting/listening.h"
#include "lockstep/launch/rendezvous/plan.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);

}  // namespace

EndpointSearch::EndpointSearch(Endpoint endpoint, Endpoint own, std::string secret,
                               std::string run_id)
    : endpoint_(std::move(endpoint)),
      own_(std::move(own)),
      secret_(std::move(secret)),
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
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    try {
      look();
    } catch (const Error&) {
      // Nobody of ours is there, or not yet.
    }
    lock.lock();
    if (!stopping_) stopped_.wait_until(lock, Deadline::after(kEvery).when());
  }
}

void EndpointSearch::look() {
  const auto soon = Deadline::after(kEvery);
  if (!somebody_listens(endpoint_, soon)) return;
  const auto store = connect_tcp_store(endpoint_, secret_, soon);
  const auto job = store->try_get(keys::kJob, soon);
  if (!job || (!job->empty() && !run_id_.empty() && *job != run_id_)) return;
  const auto text = store->try_get(keys::kRecord, soon);
  if (!text) return;
  const JobRecord::State state = job_record_from_json(*text).state;
  if (state == JobRecord::State::kEnded) return;
  if (state == JobRecord::State::kRunning || !we_run_) {
    they_run_ = true;
  } else {
    store->set(keys::kMoved, to_string(own_), soon);
  }
}

}  // namespace lockstep
