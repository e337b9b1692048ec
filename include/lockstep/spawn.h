#pragma once
// Ranks from within one program, as torch.multiprocessing.spawn starts them.

#include <chrono>
#include <functional>

namespace lockstep {

struct SpawnOptions {
  /// Whether ranks are threads of this process, for a debugger; see spawn().
  bool threads = false;
  /// From SIGTERM to SIGKILL for the ranks that are left when one has failed.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
};

/// Runs body(rank) for each rank in [0, num_ranks) at the same time, on this host, and returns when
/// all have returned. Within it World::join() gives the rank's place:
///
///   int main() {
///     lockstep::spawn(4, [](int rank) {
///       auto world = lockstep::World::join();
///       auto group = lockstep::ProcessGroup::create(world);
///       ...
///     });
///   }
///
/// Ranks are processes, forked from this one: each begins with a copy of its memory, and what it
/// changes there nobody else sees. They have the environment of a worker of `lockstep run` and
/// share standard input and output. LOCKSTEP_SECRET stays the user's: ranks that several hosts have
/// spawned may join each other by World::join({.rank = ...}). A rank ends when its body returns,
/// without destructors of static objects and atexit(). The kernel kills all of them should this
/// thread end before them; processes that a body starts are the body's to end.
///
/// The first failure ends all: the others get SIGTERM, after `grace` SIGKILL, and none is left when
/// spawn() throws it, as "rank R of N: TEXT". A rank fails that
///   throws: TEXT is what(); an Error keeps its code, other exceptions become std::runtime_error;
///   exits with another code than 0, or is killed: kPeerLost, "exit code 3", "killed by SIGSEGV".
/// Where a rank's failure is that it lost another (kPeerLost), that other's own is thrown, if it
/// comes within a second.
///
/// A process forked from one with several threads has only one of them, and every lock that another
/// held stays locked: so a process that has started threads is refused, with kInvalidArgument and
/// their number. libtorch starts some with the first large operation, ProcessGroup with its
/// creation: spawn first. (Threads that were there before main() do not count: runtime libraries'
/// own, which look after forks themselves.) Afterwards, and in a body before it creates threads,
/// spawn() may be called again. One thread at a time calls it.
///
/// With `threads` ranks are threads: what they change they share, libtorch's default generator
/// among it, and World::join() has to be called by the thread that body() runs in. A thread cannot
/// be ended, so spawn() throws the first failure when all have returned; others learn of it when
/// the failed one's groups go.
///
/// Errors: kInvalidArgument (num_ranks below 1, threads), kIo, those of the ranks.
/// Source: torch/multiprocessing/spawn.py of PyTorch.
void spawn(int num_ranks, const std::function<void(int rank)>& body,
           const SpawnOptions& options = {});

}  // namespace lockstep
