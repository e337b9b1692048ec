// A rank for leftovers_test.cpp, inspect_test.cpp and launch/: it has a process group with its own
// memory, and keeps it. With "skip" rank 1 omits the last collective, in which the others then
// wait. With "end" all end well; with "loop" they repeat calls; with "spawn processes" or "spawn
// threads" it starts two. The lines of the calls matter to inspect_test.cpp.

#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/spawn.h"

namespace {

int body(int argc, char** argv) {
  using namespace lockstep;
  auto group = ProcessGroup::create(World::join(Deadline::after(60s)));
  const auto buffer = group.allocate(1 << 20);
  group.all_reduce(buffer->data(), 1 << 18, DType::kFloat32, ReduceOp::kSum).wait();
  std::printf("holding %d\n", ::getpid());
  std::fflush(stdout);
  const bool skips = argc > 1 && std::string_view(argv[1]) == "skip" && group.rank() == 1;
  if (argc > 1 && !skips) group.barrier();
  if (argc > 1 && std::string_view(argv[1]) == "end") return 0;
  while (argc > 1 && std::string_view(argv[1]) == "loop") group.barrier();
  while (true) ::pause();
}

int start(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "spawn") return body(argc, argv);
  const bool threads = std::string_view(argv[2]) == "threads";
  lockstep::spawn(2, [&](int /*rank*/) { body(1, argv); }, {.threads = threads});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("group_holder", start, argc, argv);
}
