#pragma once
// After failover, a thread polls the original endpoint, and those where others may have taken
// over, for agents of this job. Such agents came when the endpoint's host was back, or belong to a
// part behind a cut link.

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/mutex.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/rendezvous/rendezvous_backend.h"

namespace lockstep::inline internal {

class EndpointSearch {
 public:
  /// Looks at each of `endpoints` every second. If agents form a job there while ours runs, tells
  /// them to come to `own`.
  EndpointSearch(std::vector<Endpoint> endpoints, Endpoint own, std::string secret, Wire wire,
                 std::string run_id);
  ~EndpointSearch();  ///< Takes up to some seconds if the endpoint does not answer.
  EndpointSearch(const EndpointSearch&) = delete;
  EndpointSearch& operator=(const EndpointSearch&) = delete;

  /// Whether our job runs.
  void we_run(bool yes) { we_run_ = yes; }
  /// Where the job runs, or forms while ours does not run either: our agents should go there.
  std::optional<Endpoint> they_run() const;

 private:
  void run();
  void look_at_all();
  bool look(const Endpoint& endpoint);

  const std::vector<Endpoint> endpoints_;
  const Endpoint own_;
  const std::string secret_;
  const Wire wire_;
  const std::string run_id_;
  std::atomic<bool> we_run_{false};
  std::atomic<int> they_run_{-1};  ///< Index of an endpoint.
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  CondVar stopped_;
  std::thread thread_;
};

/// Endpoints where another part of this agent's job may run, and the search there.
class OtherEndpoints {
 public:
  OtherEndpoints(std::string secret, const RunOptions& options)
      : secret_(std::move(secret)), wire_(options.wire), run_id_(options.run_id) {}

  /// To be called when this agent takes over: remembers the candidates before it.
  void remember(const RendezvousBackend::Candidates& candidates, const Endpoint& own);
  /// Agents that are here lead no other part.
  void forget(const std::vector<Endpoint>& here);
  void forget_all() { endpoints_.clear(); }

  /// Searches there and at `endpoint` until stop_looking(); see EndpointSearch. Nothing: no result
  /// yet.
  std::optional<Endpoint> look(const Endpoint& endpoint, const Endpoint& own, bool we_run);
  void stop_looking() { search_.reset(); }

 private:
  const std::string secret_;
  const Wire wire_;
  const std::string run_id_;
  /// Agents that did not answer when this one took over, and may still lead another part.
  std::vector<Endpoint> endpoints_;
  std::optional<EndpointSearch> search_;
};

}  // namespace lockstep::inline internal
