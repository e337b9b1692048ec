#include "lockstep/launch/agent/job_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr char kEndPrefix[] = "agent/end/";
constexpr char kFailureKey[] = "agent/end/failure";
constexpr char kSuccessPrefix[] = "agent/end/success/";
constexpr char kByePrefix[] = "agent/end/bye/";
constexpr char kBeatPrefix[] = "agent/beat/";

constexpr std::chrono::seconds kBeatEvery{1};
/// An agent this long silent is taken for dead: long enough for a host that swaps or is stopped for
/// a snapshot, short enough not to leave the other hosts idle.
constexpr std::chrono::seconds kSilenceLimit{15};
constexpr std::chrono::seconds kCallLimit{10};
constexpr std::chrono::seconds kByeLimit{5};

}  // namespace

JobWatch::JobWatch(std::shared_ptr<Store> store, const JobPlan& plan)
    : store_(std::move(store)),
      plan_(plan),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      succeeded_(plan.nodes.size(), false),
      hearts_(plan.num_nodes(), std::chrono::steady_clock::now()) {
  if (!wake_) throw io_error("eventfd");
  thread_ = std::thread([this] { run(); });
}

JobWatch::~JobWatch() {
  stopping_ = true;
  const auto soon = Deadline::after(kByeLimit);
  try {
    // This also ends the thread's watch.
    store_->set(kByePrefix + std::to_string(plan_.node_rank), "", soon);
  } catch (const Error&) {
    // The store is gone: so is node 0, and nobody waits.
  }
  thread_.join();
  if (plan_.node_rank != 0) return;
  std::vector<std::string> all;
  for (int node = 0; node < plan_.num_nodes(); ++node) {
    all.push_back(kByePrefix + std::to_string(node));
  }
  try {
    store_->wait(all, soon);
  } catch (const Error&) {
    // One that died cannot say it has heard.
  }
}

void JobWatch::clear() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
}

std::optional<Failure> JobWatch::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

bool JobWatch::all_succeeded() const {
  MutexLock lock(mutex_);
  return std::find(succeeded_.begin(), succeeded_.end(), false) == succeeded_.end();
}

void JobWatch::publish(const Failure& failure) {
  try {
    const auto put = store_->compare_set(kFailureKey, std::nullopt, to_json(failure),
                                         Deadline::after(kByeLimit));
    record(put.swapped ? failure : failure_from_json(put.value.value_or("")));
  } catch (const Error&) {
    record(failure);
  }
}

void JobWatch::publish_success() {
  try {
    store_->set(kSuccessPrefix + std::to_string(plan_.node_rank), "", Deadline::after(kByeLimit));
  } catch (const Error&) {
    // The thread will notice what is wrong with the store.
  }
}

void JobWatch::run() {
  uint64_t version = 0;
  try {
    while (!stopping_) {
      beat();
      if (plan_.node_rank == 0) check_others();
      look(&version);
    }
  } catch (const Error& error) {
    if (!stopping_) record(lost_agent(0));
  }
}

void JobWatch::beat() {
  store_->set(kBeatPrefix + std::to_string(plan_.node_rank), std::to_string(++beats_),
              Deadline::after(kCallLimit));
}

/// Node 0 only. One call a node and second: local ones, since this agent serves the store.
void JobWatch::check_others() {
  const auto now = std::chrono::steady_clock::now();
  for (int node = 0; node < plan_.num_nodes(); ++node) {
    const auto value =
        store_->try_get(kBeatPrefix + std::to_string(node), Deadline::after(kCallLimit));
    if (value) hearts_.seen(node, *value, now);
  }
  const auto silent = hearts_.silent(now, kSilenceLimit);
  if (!silent.empty()) publish(lost_agent(silent.front()));
}

void JobWatch::look(uint64_t* version) {
  const auto news = store_->watch(kEndPrefix, *version, Deadline::after(kBeatEvery));
  *version = news.version;
  for (const Store::Change& change : news.changes) take(change);
}

void JobWatch::take(const Store::Change& change) {
  if (!change.value) return;
  if (change.key == kFailureKey) {
    record(failure_from_json(*change.value));
  } else if (change.key.rfind(kSuccessPrefix, 0) == 0) {
    const auto node = static_cast<size_t>(std::stoi(change.key.substr(sizeof kSuccessPrefix - 1)));
    MutexLock lock(mutex_);
    if (node < succeeded_.size()) succeeded_[node] = true;
    ::eventfd_write(wake_.get(), 1);
  }
}

void JobWatch::record(const Failure& failure) {
  MutexLock lock(mutex_);
  if (!failure_) failure_ = failure;
  ::eventfd_write(wake_.get(), 1);
}

Failure JobWatch::lost_agent(int node) const {
  Failure failure;
  failure.node_rank = node;
  failure.host = plan_.hosts[static_cast<size_t>(node)];
  failure.status.code = 1;
  failure.cause =
      fmt::format("the agent of node {} ({}) died or cannot be reached", node, failure.host);
  return failure;
}

}  // namespace lockstep
