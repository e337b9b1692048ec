#pragma once
// spawn() starts ranks from within one program, as torch.multiprocessing.spawn does.
// start_fork_server() lets `lockstep run` start them fast.

#include <chrono>
#include <functional>

namespace lockstep {

struct SpawnOptions {
  /// Whether ranks are threads of this process, for a debugger; see spawn().
  bool threads = false;
  /// Time from SIGTERM to SIGKILL for the remaining ranks after one has failed.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
};

/// Runs body(rank) for each rank in [0, num_ranks) at the same time, on this host, and returns when
/// all have returned. In the body World::join() returns the rank's place.
///
/// Use:
///   int main() {
///     lockstep::spawn(4, [](int rank) {
///       auto world = lockstep::World::join();
///       auto group = lockstep::ProcessGroup::create(world);
///       std::printf("rank %d of %d\n", rank, group.size());
///     });
///   }
///
/// Ranks are processes, forked from this one. Each begins with a copy of its memory, and no other
/// process sees its changes. They have the environment of a worker of `lockstep run` and share
/// standard input and output. LOCKSTEP_SECRET stays the user's: ranks that several hosts have
/// spawned may join each other by World::join({.rank = ...}). A rank ends when its body returns,
/// without destructors of static objects and atexit(). If this thread ends first, the kernel kills
/// all of them. A body must end the processes that it starts.
///
/// The first failure ends all ranks: the others get SIGTERM and, after `grace`, SIGKILL. When none
/// is left, spawn() throws the failure as "rank R of N: TEXT". A rank fails if
///   it throws: TEXT is what(); an Error keeps its code, other exceptions become
///     std::runtime_error;
///   it exits with a code other than 0: kPeerLost, "exit code 3";
///   it is killed: kPeerLost, "killed by SIGSEGV".
/// If a rank failed because it lost another (kPeerLost), spawn() throws the failure of that other
/// rank, provided that it comes within a second.
///
/// A process forked from one with several threads has only one of them, and every lock that another
/// thread held stays locked. So a process that has started threads is refused, with
/// kInvalidArgument and their number. Threads start with libtorch's first large operation and with
/// the creation of a ProcessGroup: spawn first. (Threads from before main() do not count: runtime
/// libraries handle forks of their own threads.) Afterwards, and in a body before it creates
/// threads, spawn() may be called again.
///
/// With `threads` ranks are threads. They share all changes, including those of libtorch's default
/// generator. No thread can be ended, so spawn() throws the first failure after all have returned.
/// The other ranks see the loss of the failed rank's groups.
///
/// Threads: one at a time calls spawn(), and waits in it. Cost: a fork for each rank, or a thread.
/// For processes this one serves the store, in one thread.
/// Errors: kInvalidArgument (num_ranks below 1, threads), kIo, those of the ranks.
/// Source: torch/multiprocessing/spawn.py of PyTorch.
void spawn(int num_ranks, const std::function<void(int rank)>& body,
           const SpawnOptions& options = {});

// Starts many ranks of one program fast: the program is loaded once, and the ranks are forked from
// that process, the fork server.

/// Call it first in main(), before any thread starts:
///
///   int main(int argc, char** argv) {
///     lockstep::start_fork_server();
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
///  * if LOCKSTEP_FORK_SERVER=0 is set for the agent.
/// If the program has threads by then, the agent logs it and starts the program rank by rank. Cost
/// of a rank: two forks. Errors: those of `prepare`. If the agent ends, so does this process.
void start_fork_server(const std::function<void()>& prepare = {});

}  // namespace lockstep
