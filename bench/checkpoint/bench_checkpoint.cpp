// Time of a checkpoint of 200 MB, as one rank of a job: lockstep run --nproc_per_node 2 --
// bench_checkpoint FOLDER [ROUNDS]. `saved` is the time until the files are on the disk, `held` the
// time that training waits for a copy that another thread then writes, `loaded` that of reading.

#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/lockstep.h"

namespace {

/// 25 M parameters, as many values of momentum.
struct Net : torch::nn::Module {
  Net() {
    for (int i = 0; i < 6; ++i) {
      layers.push_back(register_module(fmt::format("layer{}", i), torch::nn::Linear(2048, 2048)));
    }
  }
  std::vector<torch::nn::Linear> layers;
};

void fill_momentum(Net& net, torch::optim::SGD& optimizer) {
  for (auto& parameter : net.parameters()) parameter.mutable_grad() = at::ones_like(parameter);
  optimizer.step();
}

/// Milliseconds of `action` on all ranks together.
template <class Action>
double timed(lockstep::ProcessGroup& group, const Action& action) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  action();
  group.barrier();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

void report(const char* what, std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  fmt::print("lockstep,{},min_ms={:.1f},median_ms={:.1f}\n", what, ms.front(), ms[ms.size() / 2]);
}

int measure(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_checkpoint FOLDER [ROUNDS]\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  const auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  Net net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  fill_momentum(net, optimizer);
  lockstep::TrainingState state;
  state.model = "net";
  state.world_size = world.size;
  lockstep::KeepPolicy policy;
  policy.keep = lockstep::Keep::kAll;
  std::vector<double> saved, held, loaded;
  for (int round = 0; round < rounds; ++round) {
    state.step = round + 1;
    saved.push_back(timed(group, [&] {
      if (world.rank == 0) lockstep::save_checkpoint(folder, net, optimizer, state, policy);
    }));
    held.push_back(timed(group, [&] {
      if (world.rank == 0) lockstep::copy_content(net, optimizer, state);
    }));
    loaded.push_back(
        timed(group, [&] { lockstep::load_checkpoint(folder, net, optimizer, state.model); }));
    if (world.rank == 0) {  // not measured, nor is it for the peer
      std::filesystem::remove_all(folder / lockstep::step_folder_name(state.step));
    }
  }
  if (world.rank == 0) {
    report("saved", saved);
    report("held", held);
    report("loaded", loaded);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_checkpoint", measure, argc, argv);
}
