#include "lockstep/launch/agent/agent_state.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Phase = AgentState::Phase;

/// Runs a state through events, and writes down what is to be done.
class Play {
 public:
  explicit Play(int workers, bool several_nodes = false) {
    state.workers.resize(static_cast<size_t>(workers));
    state.several_nodes = several_nodes;
    state.grace = 10s;
  }

  std::string tell(const AgentEvent& event) {
    std::string done;
    for (const AgentAction& action : advance(&state, event, now)) {
      if (const auto* sent = std::get_if<SendSignal>(&action))
        done += signal_name(sent->signal) + " ";
      if (const auto* told = std::get_if<PublishFailure>(&action))
        done += "failure" + std::to_string(told->local_rank) + " ";
      if (std::holds_alternative<PublishSignal>(action)) done += "told ";
      if (std::holds_alternative<PublishSuccess>(action)) done += "success ";
      if (std::holds_alternative<SayWaiting>(action)) done += "waiting ";
    }
    return done;
  }
  /// The worker ends, and processes of its group live on.
  std::string ends(int worker, ExitStatus status) {
    return tell(WorkerEnded{worker, status, true, {}});
  }
  /// It ends and leaves nobody.
  std::string goes(int worker, ExitStatus status, std::vector<int> dying = {}) {
    return tell(WorkerEnded{worker, status, false, std::move(dying)});
  }
  std::string wait(std::chrono::milliseconds time) {
    now += time;
    return tell(TimePassed{});
  }
  int code() const { return exit_code(state, std::nullopt); }

  AgentState state;
  AgentTime now{};
};

TEST(AgentState, AllEndWell) {
  Play play(2);
  EXPECT_EQ(play.goes(1, {0, 0}), "");
  EXPECT_EQ(play.goes(0, {0, 0}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 0);
}

TEST(AgentState, FirstFailureEndsTheOthersAndGivesTheCode) {
  Play play(3);
  EXPECT_EQ(play.goes(1, {3, 0}), "SIGTERM failure1 ");
  EXPECT_EQ(play.goes(0, {0, SIGTERM}), "");
  EXPECT_EQ(play.goes(2, {9, 0}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.state.first_failed, 1);
  EXPECT_EQ(play.code(), 3);
}

TEST(AgentState, AWorkerThatIsStillDyingOfASignalFailedFirst) {
  Play play(2);
  EXPECT_EQ(play.goes(0, {1, 0}, {1}), "SIGTERM ");
  EXPECT_EQ(play.goes(1, {0, SIGSEGV}), "failure1 ");
  EXPECT_EQ(play.code(), 139);
  Play killed(2);
  killed.goes(0, {0, SIGKILL}, {1});
  EXPECT_EQ(killed.state.first_failed, 0) << "it died of a signal itself";
}

TEST(AgentState, GraceThenSigkill) {
  Play play(2);
  play.goes(0, {1, 0});
  EXPECT_EQ(play.state.phase, Phase::kStopping);
  EXPECT_EQ(play.wait(1s), "");
  EXPECT_EQ(play.wait(3s), "waiting ");
  EXPECT_EQ(play.wait(5s), "");
  EXPECT_EQ(play.wait(2s), "SIGKILL ");
  EXPECT_EQ(play.state.phase, Phase::kKilling);
  EXPECT_EQ(play.goes(1, {0, SIGKILL}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 1);
}

TEST(AgentState, AProcessThatCannotBeKilledIsLeftInTheEnd) {
  Play play(2);
  play.goes(0, {1, 0});
  play.wait(10s);
  play.wait(10s);
  EXPECT_EQ(play.state.phase, Phase::kKilling);
  play.wait(61s);
  EXPECT_EQ(play.state.phase, Phase::kFinished);
}

TEST(AgentState, LeftBehindProcessesAreEnded) {
  Play play(2);
  EXPECT_EQ(play.ends(0, {0, 0}), "");
  EXPECT_EQ(play.goes(1, {0, 0}), "SIGTERM ");
  EXPECT_EQ(play.state.phase, Phase::kStopping);
  EXPECT_EQ(play.tell(GroupGone{0}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 0);
}

struct SignalCase {
  std::vector<ExitStatus> ends;
  int code;
};

TEST(AgentState, CodeAfterAForwardedSignal) {
  const SignalCase cases[] = {
      {{{0, SIGTERM}, {0, SIGTERM}}, 143}, {{{0, 0}, {0, 0}}, 0},
      {{{0, 0}, {0, SIGKILL}}, 143},       {{{0, SIGTERM}, {5, 0}}, 5},
      {{{143, 0}, {143, 0}}, 143},
  };
  for (const SignalCase& c : cases) {
    Play play(2);
    EXPECT_EQ(play.tell(SignalCame{SIGTERM}), "SIGTERM told ");
    play.goes(0, c.ends[0]);
    play.goes(1, c.ends[1]);
    EXPECT_EQ(play.state.phase, Phase::kFinished);
    EXPECT_EQ(play.code(), c.code);
    EXPECT_FALSE(play.state.first_failed);
  }
}

TEST(AgentState, UserSignalsPassThrough) {
  Play play(1);
  EXPECT_EQ(play.tell(SignalCame{SIGUSR1}), "SIGUSR1 ");
  EXPECT_EQ(play.state.phase, Phase::kRunning);
}

TEST(AgentState, ASecondInterruptKills) {
  Play play(1);
  EXPECT_EQ(play.tell(SignalCame{SIGINT}), "SIGINT told ");
  EXPECT_EQ(play.tell(SignalCame{SIGTERM}), "");
  EXPECT_EQ(play.tell(SignalCame{SIGINT}), "SIGKILL ");
}

TEST(AgentState, SeveralNodesEndTogether) {
  Play play(1, true);
  EXPECT_EQ(play.goes(0, {0, 0}), "success ");
  EXPECT_EQ(play.state.phase, Phase::kWaiting);
  play.tell(OthersFinished{});
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 0);
}

TEST(AgentState, AnotherNodesFailureEndsThisOneWithItsCode) {
  Play running(1, true);
  EXPECT_EQ(running.tell(OthersFailed{}), "SIGTERM ");
  EXPECT_EQ(running.goes(0, {0, SIGTERM}), "");
  EXPECT_EQ(running.state.phase, Phase::kFinished);
  EXPECT_EQ(exit_code(running.state, ExitStatus{7, 0}), 7);

  Play waiting(1, true);
  waiting.goes(0, {0, 0});
  waiting.tell(OthersFailed{});
  EXPECT_EQ(exit_code(waiting.state, ExitStatus{0, SIGSEGV}), 139);

  Play failed(1, true);
  failed.goes(0, {3, 0});
  failed.tell(OthersFailed{});
  EXPECT_EQ(exit_code(failed.state, ExitStatus{7, 0}), 3) << "its own came first";
}

TEST(AgentState, ASignalWhileOthersStillRunIsNoSuccess) {
  Play play(1, true);
  play.goes(0, {0, 0});
  EXPECT_EQ(play.tell(SignalCame{SIGTERM}), "told ");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 143);
}

}  // namespace
}  // namespace lockstep
