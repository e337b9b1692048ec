// Collectives besides training: sums, copies of one rank's data, all ranks' data, messages.
// lockstep run --nproc_per_node 2 -- collectives

#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int talk(int, char**) {
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);

  // Every rank has its own numbers, and afterwards their sum.
  auto sum = torch::full({4}, world.rank + 1.0);
  lockstep::all_reduce(group, sum, lockstep::ReduceOp::kSum).wait();

  // Rank 0's tensor replaces that of every other rank.
  auto seed = torch::full({1}, world.rank == 0 ? 42 : 0, torch::kLong);
  lockstep::broadcast(group, seed, /*root=*/0).wait();

  // Row r of `all` is the row of rank r.
  const auto own = torch::full({1, 2}, world.rank, torch::kLong);
  auto all = torch::empty({world.size, 2}, torch::kLong);
  lockstep::all_gather(group, own, all).wait();

  // Asynchronous: the group works in its own thread until wait().
  auto largest = torch::full({1 << 20}, static_cast<float>(world.rank));
  auto work = lockstep::all_reduce(group, largest, lockstep::ReduceOp::kMax, {.async = true});
  const auto meanwhile = torch::ones({64, 64}).matmul(torch::ones({64, 64})).sum().item<double>();
  work.wait();

  // A message to the next rank, and one from the previous rank.
  int64_t sent = world.rank, received = world.rank;
  if (world.size > 1) {  // no rank sends to itself
    const int next = (world.rank + 1) % world.size;
    const int previous = (world.rank + world.size - 1) % world.size;
    auto sending = group.send(&sent, 1, lockstep::DType::kInt64, next);
    group.recv(&received, 1, lockstep::DType::kInt64, previous).wait();
    sending.wait();
  }

  group.barrier();
  std::printf("rank %d: sum %.0f, seed %ld, rows %ld, largest %.0f, meanwhile %.0f, from %ld\n",
              world.rank, sum[0].item<double>(), seed.item<int64_t>(), all.sum().item<int64_t>(),
              largest[0].item<double>(), meanwhile, received);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("collectives", talk, argc, argv);
}
