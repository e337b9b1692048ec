#include "lockstep/launch/agent/agent_state.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <utility>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Phase = AgentState::Phase;

/// Passes events to a state, and writes down the resulting actions.
class Play {
 public:
  explicit Play(int workers) {
    state.grace = 10s;
    dispatch(GenerationStarted{workers});
  }

  std::string dispatch(const AgentEvent& event) {
    std::string done;
    for (const AgentAction& action : advance(&state, event, now)) {
      if (const auto* sent = std::get_if<SendSignal>(&action))
        done += signal_name(sent->signal) + " ";
      if (const auto* told = std::get_if<PublishFailure>(&action))
        done += "failure" + std::to_string(told->local_rank) + " ";
      if (std::holds_alternative<PublishSignal>(action)) done += "told ";
      if (std::holds_alternative<PublishSuccess>(action)) done += "success ";
      if (std::holds_alternative<PublishGone>(action)) done += "gone ";
      if (std::holds_alternative<ReportWaiting>(action)) done += "waiting ";
    }
    return done;
  }
  /// The worker ends, but processes of its group live on.
  std::string ends(int worker, ExitStatus status) {
    return dispatch(WorkerEnded{worker, status, true, {}});
  }
  /// It ends and leaves no process.
  std::string goes(int worker, ExitStatus status, std::vector<int> dying = {}) {
    return dispatch(WorkerEnded{worker, status, false, std::move(dying)});
  }
  std::string wait(std::chrono::milliseconds time) {
    now += time;
    return dispatch(TimePassed{});
  }
  int code() const { return exit_code(state, std::nullopt); }

  AgentState state;
  AgentTime now{};
};

TEST(AgentState, AllEndWell) {
  Play play(2);
  EXPECT_EQ(play.goes(1, {0, 0}), "");
  EXPECT_EQ(play.goes(0, {0, 0}), "success ");
  EXPECT_EQ(play.state.phase, Phase::kWaiting);
  EXPECT_EQ(play.dispatch(JobOver{}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 0);
}

TEST(AgentState, ASignalThatCameBeforeTheWorkersIsActedUponAtOnce) {
  Play play(0);
  EXPECT_EQ(play.dispatch(SignalCame{SIGTERM}), "SIGTERM told ");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 143);
  Play told(0);
  EXPECT_EQ(told.dispatch(GenerationOver{}), "SIGTERM ");
  EXPECT_EQ(told.dispatch(SignalCame{SIGINT}), "SIGKILL told ");
  EXPECT_EQ(told.state.phase, Phase::kFinished);
  EXPECT_EQ(told.code(), 130);
}

TEST(AgentState, AWorkerThatCannotBeKilledForTheNextGenerationIsNoSuccess) {
  Play play(2);
  EXPECT_EQ(play.dispatch(GenerationOver{}), "SIGTERM ");
  EXPECT_EQ(play.goes(0, {0, SIGTERM}), "");
  EXPECT_EQ(play.wait(3s), "waiting ");
  EXPECT_EQ(play.wait(7s), "SIGKILL ");
  EXPECT_EQ(play.wait(60s), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 1);
}

TEST(AgentState, FirstFailureEndsTheOthersAndGivesTheCode) {
  Play play(3);
  EXPECT_EQ(play.goes(1, {3, 0}), "SIGTERM failure1 ");
  EXPECT_EQ(play.goes(0, {0, SIGTERM}), "");
  EXPECT_EQ(play.dispatch(JobOver{}), "");
  EXPECT_EQ(play.state.phase, Phase::kStopping);
  EXPECT_EQ(play.goes(2, {9, 0}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.state.first_failed, 1);
  EXPECT_EQ(exit_code(play.state, ExitStatus{3, 0}), 3);
}

TEST(AgentState, AWorkerThatIsStillDyingOfASignalFailedFirst) {
  Play play(2);
  EXPECT_EQ(play.goes(0, {1, 0}, {1}), "SIGTERM ");
  EXPECT_EQ(play.goes(1, {0, SIGSEGV}), "failure1 gone ");
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
  EXPECT_EQ(play.goes(1, {0, SIGKILL}), "gone ");
  EXPECT_EQ(play.state.phase, Phase::kBetween);
  EXPECT_EQ(play.dispatch(JobOver{}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
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
  EXPECT_EQ(play.dispatch(GroupGone{0}), "success ");
  EXPECT_EQ(play.state.phase, Phase::kWaiting);
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
    EXPECT_EQ(play.dispatch(SignalCame{SIGTERM}), "SIGTERM told ");
    play.goes(0, c.ends[0]);
    play.goes(1, c.ends[1]);
    EXPECT_EQ(play.state.phase, Phase::kFinished);
    EXPECT_EQ(play.code(), c.code);
    EXPECT_FALSE(play.state.first_failed);
  }
}

// As any program in a pipe, whatever the end of its workers.
TEST(AgentState, AnOutputThatNobodyReadsAnyMoreIsTheReasonOfTheEnd) {
  for (const ExitStatus& end :
       {ExitStatus{143, 0}, ExitStatus{0, SIGTERM}, ExitStatus{0, 0}, ExitStatus{5, 0}}) {
    Play play(1);
    EXPECT_EQ(play.dispatch(SignalCame{SIGPIPE}), "SIGPIPE told ");
    play.goes(0, end);
    EXPECT_EQ(play.code(), 128 + SIGPIPE);
  }
}

TEST(AgentState, TimeInWhichAllStoodStillIsNoGrace) {
  Play play(1);
  play.dispatch(SignalCame{SIGTERM});
  play.now += 1h;
  EXPECT_EQ(play.dispatch(AgentResumed{1h}), "");
  EXPECT_EQ(play.wait(9s), "waiting ");
  EXPECT_EQ(play.wait(1s), "SIGKILL ");
}

TEST(AgentState, UserSignalsPassThrough) {
  Play play(1);
  EXPECT_EQ(play.dispatch(SignalCame{SIGUSR1}), "SIGUSR1 ");
  EXPECT_EQ(play.state.phase, Phase::kRunning);
}

TEST(AgentState, AUserSignalThatIsToEndTheJobDoesSoInEachGeneration) {
  Play play(1);
  play.state.ending_signals = {SIGTERM, SIGUSR1};
  play.dispatch(GenerationStarted{1});
  EXPECT_EQ(play.dispatch(SignalCame{SIGUSR2}), "SIGUSR2 ");
  EXPECT_EQ(play.state.phase, Phase::kRunning);
  EXPECT_EQ(play.dispatch(SignalCame{SIGUSR1}), "SIGUSR1 told ");
  EXPECT_EQ(play.state.phase, Phase::kStopping);
}

TEST(AgentState, ASecondInterruptKills) {
  Play play(1);
  EXPECT_EQ(play.dispatch(SignalCame{SIGINT}), "SIGINT told ");
  EXPECT_EQ(play.dispatch(SignalCame{SIGTERM}), "");
  EXPECT_EQ(play.dispatch(SignalCame{SIGINT}), "SIGKILL ");
}

TEST(AgentState, AnotherNodesFailureEndsThisOneWithItsCode) {
  Play running(1);
  EXPECT_EQ(running.dispatch(JobOver{}), "SIGTERM ");
  EXPECT_EQ(running.goes(0, {0, SIGTERM}), "");
  EXPECT_EQ(running.state.phase, Phase::kFinished);
  EXPECT_EQ(exit_code(running.state, ExitStatus{7, 0}), 7);

  Play waiting(1);
  waiting.goes(0, {0, 0});
  waiting.dispatch(JobOver{});
  EXPECT_EQ(waiting.state.phase, Phase::kFinished);
  EXPECT_EQ(exit_code(waiting.state, ExitStatus{0, SIGSEGV}), 139);

  Play failed(1);
  failed.goes(0, {3, 0});
  failed.dispatch(JobOver{});
  EXPECT_EQ(exit_code(failed.state, ExitStatus{7, 0}), 7) << "another node's came first";
}

TEST(AgentState, ASignalWhileOthersStillRunIsNoSuccess) {
  Play play(1);
  play.goes(0, {0, 0});
  EXPECT_EQ(play.dispatch(SignalCame{SIGTERM}), "told ");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
  EXPECT_EQ(play.code(), 143);
}

TEST(AgentState, AFailureHereIsFollowedByAnotherGeneration) {
  Play play(2);
  EXPECT_EQ(play.goes(0, {0, SIGKILL}), "SIGTERM failure0 ");
  EXPECT_EQ(play.dispatch(GenerationOver{}), "");
  EXPECT_EQ(play.goes(1, {1, 0}), "gone ");
  EXPECT_EQ(play.state.phase, Phase::kBetween);
  EXPECT_EQ(play.wait(1h), "") << "others may take long";
  play.dispatch(GenerationStarted{3});
  EXPECT_EQ(play.state.phase, Phase::kRunning);
  EXPECT_EQ(play.goes(2, {0, 0}), "");
  EXPECT_EQ(play.goes(0, {0, 0}), "");
  EXPECT_EQ(play.goes(1, {0, 0}), "success ");
  play.dispatch(JobOver{});
  EXPECT_EQ(exit_code(play.state, std::nullopt), 0) << "the earlier failure was mended";
}

TEST(AgentState, TheStatusMayChangeAfterTheLastWorkerHasGone) {
  Play play(1);
  EXPECT_EQ(play.goes(0, {3, 0}), "SIGTERM failure0 gone ");
  EXPECT_EQ(play.state.phase, Phase::kBetween);
  EXPECT_EQ(play.dispatch(GenerationOver{}), "");
  EXPECT_EQ(play.state.phase, Phase::kBetween);
  EXPECT_EQ(play.dispatch(JobOver{}), "");
  EXPECT_EQ(play.state.phase, Phase::kFinished);
}

TEST(AgentState, AGenerationThatEndsElsewhereEndsHere) {
  Play running(2);
  EXPECT_EQ(running.dispatch(GenerationOver{}), "SIGTERM ");
  EXPECT_EQ(running.goes(0, {5, 0}), "") << "no failure of its own";
  EXPECT_EQ(running.goes(1, {0, 0}), "gone ");
  Play done(1);
  EXPECT_EQ(done.goes(0, {0, 0}), "success ");
  EXPECT_EQ(done.dispatch(GenerationOver{}), "gone ")
      << "all start again, also those that were done";
  EXPECT_EQ(done.state.phase, Phase::kBetween);
}

TEST(AgentState, WhoHasToBeGoneByATimeIsKilledThen) {
  Play play(1);
  EXPECT_EQ(play.dispatch(GenerationOver{play.now + 2s}), "SIGTERM ");
  EXPECT_EQ(play.wait(1999ms), "");
  EXPECT_EQ(play.wait(1ms), "SIGKILL ");
  EXPECT_EQ(play.goes(0, {0, SIGKILL}), "gone ");

  Play late(1);
  EXPECT_EQ(late.dispatch(GenerationOver{late.now - 1s}), "SIGTERM SIGKILL ");

  Play again(1);
  EXPECT_EQ(again.dispatch(GenerationOver{}), "SIGTERM ");
  EXPECT_EQ(again.dispatch(GenerationOver{again.now + 1s}), "");
  EXPECT_EQ(again.wait(1s), "SIGKILL ");
}

TEST(AgentState, ASignalEndsANodeThatWouldStartAgain) {
  Play stopping(2);
  stopping.goes(0, {3, 0});
  stopping.dispatch(GenerationOver{});
  EXPECT_EQ(stopping.dispatch(SignalCame{SIGTERM}), "told ");
  EXPECT_EQ(stopping.goes(1, {0, SIGTERM}), "");
  EXPECT_EQ(stopping.state.phase, Phase::kFinished);
  EXPECT_EQ(stopping.code(), 3);

  Play between(1);
  between.dispatch(GenerationOver{});
  between.goes(0, {0, SIGTERM});
  EXPECT_EQ(between.dispatch(SignalCame{SIGINT}), "told ");
  EXPECT_EQ(between.state.phase, Phase::kFinished);
  EXPECT_EQ(between.code(), 130);
}

}  // namespace
}  // namespace lockstep
