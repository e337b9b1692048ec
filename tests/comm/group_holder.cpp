// A rank for leftovers_test.cpp: has a process group with memory of its own, and keeps it.

#include <unistd.h>

#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/comm/process_group.h"

namespace {

int body(int, char**) {
  using namespace lockstep;
  auto group = ProcessGroup::create(World::join(Deadline::after(60s)));
  const auto buffer = group.allocate(1 << 20);
  group.all_reduce(buffer->data(), 1 << 18, DType::kFloat32, ReduceOp::kSum).wait();
  std::printf("holding %d\n", ::getpid());
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("group_holder", body, argc, argv);
}
