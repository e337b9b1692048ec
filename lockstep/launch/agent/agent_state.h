#pragma once
// The agent's reaction to an event: a pure function of its state and the event.
//
//   running --all ended well--> waiting for the others
//   running --failure, signal, job status, processes left behind--> stopping (SIGTERM, the signal)
//   stopping --grace or time to be gone over, or a second SIGINT--> killing (SIGKILL)
//   stopping, killing --nothing left--> between two generations --an assignment--> running
//   any --the job is over or this host was told to end, and nothing left--> finished

#include <chrono>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "lockstep/base/children.h"

namespace lockstep::inline internal {

using AgentTime = std::chrono::steady_clock::time_point;

struct AgentState {
  enum class Phase { kRunning, kWaiting, kStopping, kKilling, kBetween, kFinished };
  struct Worker {
    bool ended = false;  ///< The worker itself.
    bool gone = false;   ///< The worker and every process of its group.
    ExitStatus status;
  };

  std::vector<Worker> workers;
  std::chrono::milliseconds grace{30000};
  std::set<int> ending_signals;  ///< Those of SIGUSR1 and SIGUSR2 that end the job.

  Phase phase = Phase::kRunning;
  std::optional<AgentTime> act_at;   ///< When to send TimePassed.
  std::optional<AgentTime> kill_at;  ///< End of the grace.
  std::optional<int> first_failed;   ///< Local rank of the worker that failed first here.
  bool must_leave = false;           ///< This host must leave the generation.
  bool job_over = false;
  bool ended_by_job = false;   ///< The job was over before a signal told this host to end.
  int stop_signal = 0;         ///< The signal that was forwarded to end this host's part.
  bool left_others = false;    ///< The signal came while only other hosts still ran.
  std::vector<int> end_order;  ///< Local ranks in the order in which they ended.
};

/// A worker ended. `group_left`: other processes of its group live on. `dying_by_signal`: other
/// workers that a signal is ending; the kernel frees their memory first. If there are any, one of
/// them failed first.
struct WorkerEnded {
  int local_rank = 0;
  ExitStatus status;
  bool group_left = false;
  std::vector<int> dying_by_signal;
};
/// No process is left of a group that had outlived its worker.
struct GroupGone {
  int local_rank = 0;
};
struct SignalCame {
  int signal = 0;
};
/// The generation is over, and there may be another. `kill_by`: when the next one begins at the
/// earliest, if it does not wait for these workers. May come again with an earlier time.
struct GenerationOver {
  std::optional<AgentTime> kill_by;
};
/// The job is over; no generation follows.
struct JobOver {};
/// The next generation's workers have been started. 0: a signal came first; its own event follows.
struct GenerationStarted {
  int workers = 0;
};
struct TimePassed {};
/// Agent and workers were stopped for this long, which counts for no grace.
struct AgentResumed {
  std::chrono::nanoseconds time{0};
};
using AgentEvent = std::variant<WorkerEnded, GroupGone, SignalCame, GenerationOver, JobOver,
                                GenerationStarted, TimePassed, AgentResumed>;

/// To every process of every worker that is not gone.
struct SendSignal {
  int signal = 0;
};
/// Publishes that this worker failed first here.
struct PublishFailure {
  int local_rank = 0;
};
/// Publishes that a signal ends this host's part.
struct PublishSignal {
  int signal = 0;
};
/// Publishes that all workers here ended well.
struct PublishSuccess {};
/// Publishes that no worker is left here, so that the next generation may begin.
struct PublishGone {};
/// Names the ranks that have not ended yet to the user.
struct ReportWaiting {};
using AgentAction = std::variant<SendSignal, PublishFailure, PublishSignal, PublishSuccess,
                                 PublishGone, ReportWaiting>;

/// Changes `state` as `event` demands and returns what must be done, in this order.
std::vector<AgentAction> advance(AgentState* state, const AgentEvent& event, AgentTime now);

/// Local ranks that are not gone.
std::vector<int> remaining(const AgentState& state);

/// Of the workers that ended before `local_rank`, those with exit code 0.
std::vector<int> ended_well_before(const AgentState& state, int local_rank);

/// Exit code of a finished agent. `job`: how the job's first failure ended, or nothing if the job
/// ended well. It counts if the job's end ended this host's part. Otherwise, the first that
/// applies:
/// - the code of the worker that failed first here;
/// - 128 + SIGPIPE if the output had no reader any more;
/// - after a forwarded signal, the code of the first worker that exited with another code than 0;
///   else 128 + signal, unless all exited with 0 and no other host still ran;
/// - 1 if workers that had to make way for another generation could not be killed.
int exit_code(const AgentState& state, const std::optional<ExitStatus>& job);

}  // namespace lockstep::inline internal
