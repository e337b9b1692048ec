#pragma once
// A job that goes on elsewhere than at its endpoint looks there, and where others may have taken
// over, for agents of its own, in a thread: such as came when the endpoint's host was back, or a
// half that a cut link separated.

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/socket.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/rendezvous/meeting_place.h"

namespace lockstep {

class EndpointSearch {
 public:
  /// Looks at each of `places` every second. Who forms a job there, while ours runs, is told to
  /// come to `own`.
  EndpointSearch(std::vector<Endpoint> places, Endpoint own, std::string secret, Wire wire,
                 std::string run_id);
  ~EndpointSearch();  ///< Takes up to some seconds when the endpoint does not answer.
  EndpointSearch(const EndpointSearch&) = delete;
  EndpointSearch& operator=(const EndpointSearch&) = delete;

  /// Whether ours runs.
  void we_run(bool yes) { we_run_ = yes; }
  /// Where the job runs, or forms while ours does not run either: ours should go there.
  std::optional<Endpoint> they_run() const;

 private:
  void run();
  void look_at_all();
  bool look(const Endpoint& place);

  const std::vector<Endpoint> places_;
  const Endpoint own_;
  const std::string secret_;
  const Wire wire_;
  const std::string run_id_;
  std::atomic<bool> we_run_{false};
  std::atomic<int> they_run_{-1};  ///< Index of a place.
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  CondVar stopped_;
  std::thread thread_;
};

/// Places where another half of this agent's job may run, and the search there.
class OtherPlaces {
 public:
  OtherPlaces(std::string secret, const RunOptions& options)
      : secret_(std::move(secret)), wire_(options.wire), run_id_(options.run_id) {}

  /// When this agent takes over: those that came before it.
  void remember(const MeetingPlace::Candidates& candidates, const Endpoint& own);
  /// Who is here leads no other half.
  void forget(const std::vector<Endpoint>& here);
  void forget_all() { places_.clear(); }

  /// Looks there and at `endpoint` until stop_looking(); see EndpointSearch. Nothing yet: nullopt.
  std::optional<Endpoint> look(const Endpoint& endpoint, const Endpoint& own, bool we_run);
  void stop_looking() { search_.reset(); }

 private:
  const std::string secret_;
  const Wire wire_;
  const std::string run_id_;
  /// Agents that did not answer when this one took over, and may yet lead another half.
  std::vector<Endpoint> places_;
  std::optional<EndpointSearch> search_;
};

}  // namespace lockstep
