// A rank for leftovers_test.cpp, inspect_test.cpp and launch/: it has a process group with its own
// memory, and keeps it. With "skip" rank 1 omits the last collective, in which the others then
// wait. With "end" all end well; with "loop" they repeat calls; with "steps" they report progress.
// With "spawn processes" or "spawn threads" it starts two, of which rank 1 or both report progress.
// The lines of the calls matter to inspect_test.cpp.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/progress.h"
#include "lockstep/spawn.h"

namespace {

/// Rank 0 is at step 812. A forked child, such as a loader of data, must not change that.
void report_progress(int rank) {
  lockstep::expect_steps();
  lockstep::report_step(
      {.step = 812 + rank, .total = 5000, .loss = 1.25, .seconds_left = 440, .note = "slow"});
  const pid_t child = ::fork();
  if (child == 0) {
    lockstep::report_step({.step = 1});
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

int body(std::string_view mode) {
  using namespace lockstep;
  auto group = ProcessGroup::create(World::join(Deadline::after(60s)));
  const auto buffer = group.allocate(1 << 20);
  group.all_reduce(buffer->data(), 1 << 18, DType::kFloat32, ReduceOp::kSum).wait();
  if (mode == "steps") report_progress(group.rank());
  std::printf("holding %d\n", ::getpid());
  std::fflush(stdout);
  const bool skips = mode == "skip" && group.rank() == 1;
  if (!mode.empty() && !skips) group.barrier();
  if (mode == "end") return 0;
  while (mode == "loop") group.barrier();
  while (true) ::pause();
}

int start(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc < 3 || mode != "spawn") return body(mode);
  const bool threads = std::string_view(argv[2]) == "threads";
  lockstep::report_step({.step = 1});  // no progress of ranks that are processes
  const auto mode_of = [&](int rank) { return threads || rank == 1 ? "steps" : "quiet"; };
  lockstep::spawn(2, [&](int rank) { body(mode_of(rank)); }, {.threads = threads});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("group_holder", start, argc, argv);
}
