// A trainer for long runs in one file. It saves every epoch, resumes with any number of ranks,
// evaluates exactly, keeps the best weights, and ends well on SIGTERM.
// lockstep run --nproc_per_node 2 --max_restarts 3 -- own_trainer FOLDER EPOCHS

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "lockstep/lockstep.h"

volatile std::sig_atomic_t end_asked = 0;

struct Data {
  torch::Tensor x, y;

  static Data sine(int64_t n) {
    const auto x = torch::rand({n, 1}) * 2 - 1;
    return {x, (3 * x).sin()};
  }
  int64_t size() const { return x.size(0); }
};

using Ddp = lockstep::DistributedDataParallel<torch::nn::Sequential>;

torch::Tensor loss_of(Ddp& model, const Data& data, const torch::Tensor& rows) {
  return (model(data.x.index_select(0, rows)) - data.y.index_select(0, rows)).square().mean();
}

/// The mean squared error over all samples; each rank computes a part.
double evaluate(Ddp& model, const Data& data, const lockstep::World& world,
                lockstep::ProcessGroup& group) {
  const lockstep::ReportedWork report("evaluation");
  const torch::NoGradGuard no_grad;
  const lockstep::DistributedSampler sampler(data.size(), world, {.shuffle = false});
  const auto own = torch::tensor(sampler.indices()).narrow(0, 0, sampler.num_unpadded());
  model.eval();
  const double mean = loss_of(model, data, own).item<double>();
  model.train();
  return lockstep::global_mean(group, mean * static_cast<double>(own.size(0)), own.size(0));
}

/// Whether SIGTERM came to any rank: all ranks end after the same step.
bool any_end_asked(lockstep::ProcessGroup& group) {
  int64_t asked = end_asked;
  group.all_reduce(&asked, 1, lockstep::DType::kInt64, lockstep::ReduceOp::kMax).wait();
  return asked != 0;
}

int train(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: own_trainer FOLDER EPOCHS\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const int64_t epochs = std::atoll(argv[2]);
  std::signal(SIGTERM, [](int) { end_asked = 1; });
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  lockstep::expect_steps();
  torch::manual_seed(1);
  const Data data = Data::sine(1024), held_out = Data::sine(257);
  torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  torch::optim::Adam optimizer(net->parameters(), 0.01);

  // An earlier generation of this job that was stopped and wakes up can save no more.
  lockstep::WriterFence fence;
  if (world.rank == 0) fence = {folder, world.job_id, world.generation, world.generation_token};
  group.barrier();  // no rank looks for a checkpoint before

  // All ranks read; the weights and the optimizer get the saved values.
  lockstep::TrainingState state;
  state.model = "sine";
  if (lockstep::has_checkpoint(folder))
    state = lockstep::load_checkpoint(folder, *net, optimizer, state.model);
  lockstep::rank_by(state, "error", /*higher_is_better=*/false);
  auto model = Ddp(net, group);
  auto sampler = lockstep::DistributedSampler(data.size(), world);
  if (world.rank == 0) std::printf("begins with step %ld\n", state.step + 1);
  const auto save = [&] {
    state.world_size = world.size;
    const lockstep::KeepPolicy keep{
        .keep = lockstep::Keep::kTopK, .count = 2, .higher_is_better = false};
    if (world.rank == 0) lockstep::save_checkpoint(folder, *net, optimizer, state, keep, fence);
    group.barrier();  // no rank continues before the checkpoint is on the disk
  };

  bool end = false;
  while (!end && state.epoch < epochs) {
    sampler.set_epoch(state.epoch);
    // Skips samples of this epoch that earlier runs took, on any number of ranks.
    for (const auto& rows : torch::tensor(sampler.indices(state.epoch_samples)).split(16)) {
      model.zero_grad();
      const auto loss = loss_of(model, data, rows);
      loss.backward();
      optimizer.step();
      ++state.step;
      state.epoch_samples = std::min(data.size(), state.epoch_samples + rows.size(0) * world.size);
      lockstep::report_step({.step = state.step, .loss = loss.item<double>()});
      end = any_end_asked(group);
      if (end) break;
    }
    if (!end || state.epoch_samples == data.size()) {
      ++state.epoch;
      state.epoch_samples = 0;
      lockstep::record_metric(state, evaluate(model, held_out, world, group));
    }
    save();
  }
  if (world.rank == 0)
    std::printf("%s after step %ld, error %.9f\n", end ? "ended" : "done", state.step,
                state.best ? state.best->value : -1.0);
  return end ? 128 + SIGTERM : 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("own_trainer", train, argc, argv);
}
