#pragma once
// Starts many ranks of one program fast: the program is loaded once, and the ranks are forked from
// that process, the fork server.

#include <functional>

namespace lockstep {

/// Call it first in main(), before any thread starts:
///
///   int main(int argc, char** argv) {
///     lockstep::warm_start();
///     ...
///
/// `lockstep run` detects this function in a program and starts the program once per host. There
/// the call does not return: it waits for requests of the agent and forks a rank for each. In each
/// rank it returns, with environment, standard streams, session and parent of a process that the
/// agent started itself. So the work of static initialisers and of main() before the call is done
/// once. So is `prepare` (e.g. a first small computation, which loads pages). `prepare` must not
/// start threads. Restarted ranks come from the same process and so start within milliseconds.
///
/// A host that waits for others, or is a spare, loads the program meanwhile.
///
/// In all other cases it returns at once, without `prepare`:
///  * without an agent, or under other launchers;
///  * as the only rank of a job of one host without --max_restarts;
///  * if the ranks' arguments differ;
///  * if LOCKSTEP_WARM_START=0 is set for the agent.
/// If the program has threads by then, the agent logs it and starts the program rank by rank. Cost
/// of a rank: two forks.
void warm_start(const std::function<void()>& prepare = {});

}  // namespace lockstep
