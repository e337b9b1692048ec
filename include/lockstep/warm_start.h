#pragma once
// Starting many ranks of one program fast: it is loaded once, and the ranks are forked from that
// process.

#include <functional>

namespace lockstep {

/// Call it first in main(), before there are threads:
///
///   int main(int argc, char** argv) {
///     lockstep::warm_start();
///     ...
///
/// `lockstep run` finds in a program that this is linked into it, and starts it once a host. There
/// this call does not return: it waits, and forks a rank when it is asked to. In each rank it
/// returns, with environment, standard streams, session and parent of a process that the agent
/// started itself. So what main() and static initialisers did before is done once, and so is
/// `prepare` (e.g. a first small computation, which loads pages); it may start no threads.
/// Restarted ranks come from the same process, which is why they are there in milliseconds.
///
/// A host that waits for others, or is a spare, loads it meanwhile.
///
/// Anywhere else it returns at once, without `prepare`: without an agent, under other launchers, as
/// the only rank of a job of one host without --max_restarts, where the ranks' arguments differ, or
/// where LOCKSTEP_WARM_START=0 is set for the agent. A program that has threads by then is started
/// rank by rank, which the agent says. Cost of a rank: two forks.
void warm_start(const std::function<void()>& prepare = {});

}  // namespace lockstep
