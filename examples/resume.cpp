// A training loop that saves every epoch and resumes, on any number of ranks that see the folder:
// lockstep run --nproc_per_node 2 -- resume DIR EPOCHS

#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/lockstep.h"

int train(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: resume DIR EPOCHS\n");
    return 2;
  }
  const std::filesystem::path dir = argv[1];
  const int64_t epochs = std::atoll(argv[2]);
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(1);
  const auto x = torch::rand({256, 4});
  const auto y = x.matmul(torch::arange(1, 5).to(torch::kFloat)).unsqueeze(1);
  torch::nn::Linear net(4, 1);
  torch::optim::Adam optimizer(net->parameters(), 0.1);

  // Of a restarted job only the newest generation's rank 0 can save from here on.
  lockstep::WriterFence fence;
  if (world.rank == 0) {
    fence = {dir, world.job_id, world.generation, world.generation_token};
  }
  group.barrier();  // no rank looks for a checkpoint before

  // Every rank reads, before the ranks compare their weights. The checkpoint names the network.
  lockstep::TrainingState state;
  state.model = "line";
  if (lockstep::has_checkpoint(dir)) {
    state = lockstep::load_checkpoint(dir, *net, optimizer, state.model);
  }
  auto model = lockstep::DistributedDataParallel(net, group);
  auto sampler = lockstep::DistributedSampler(x.size(0), world);
  if (world.rank == 0) std::printf("begins with epoch %ld\n", state.epoch + 1);
  while (state.epoch < epochs) {
    sampler.set_epoch(state.epoch);
    for (const auto& batch : torch::tensor(sampler.indices()).split(16)) {
      const auto loss =
          (model(x.index_select(0, batch)) - y.index_select(0, batch)).square().mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      ++state.step;
    }
    ++state.epoch;
    // One rank writes, whole or not at all; the two newest are kept.
    lockstep::KeepPolicy policy;
    policy.count = 2;
    if (world.rank == 0) lockstep::save_checkpoint(dir, *net, optimizer, state, policy, fence);
  }
  group.barrier();  // the others would miss a rank that ends while rank 0 still writes
  std::printf("error %.9f\n", (net(x) - y).square().mean().item<double>());
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("resume", train, argc, argv);
}
