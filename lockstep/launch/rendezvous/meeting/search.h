#pragma once
// A job that goes on elsewhere than at its endpoint looks there for agents of its own, in a thread:
// such as came when the endpoint's host was back, or a half that a cut link separated.

#include <atomic>
#include <string>
#include <thread>

#include "lockstep/base/mutex.h"
#include "lockstep/base/socket.h"

namespace lockstep {

class EndpointSearch {
 public:
  /// Looks at `endpoint` every second. Who forms a job there, while ours runs, is told to come to
  /// `own`.
  EndpointSearch(Endpoint endpoint, Endpoint own, std::string secret, std::string run_id);
  ~EndpointSearch();  ///< Takes up to some seconds when the endpoint does not answer.
  EndpointSearch(const EndpointSearch&) = delete;
  EndpointSearch& operator=(const EndpointSearch&) = delete;

  /// Whether ours runs.
  void we_run(bool yes) { we_run_ = yes; }
  /// The job at the endpoint runs, or forms while ours does not run either: ours should go there.
  bool they_run() const { return they_run_; }

 private:
  void run();
  void look();

  const Endpoint endpoint_;
  const Endpoint own_;
  const std::string secret_;
  const std::string run_id_;
  std::atomic<bool> we_run_{false};
  std::atomic<bool> they_run_{false};
  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
