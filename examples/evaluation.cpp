// An exact evaluation on any number of ranks: every sample counts once, and the figures are those
// of one process. lockstep run --nproc_per_node 2 -- evaluation

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int evaluate(int, char**) {
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(1);
  const int64_t samples = 1003;  // divisible by no small number of ranks
  const auto x = torch::randn({samples, 4});
  const auto targets = torch::randint(0, 3, {samples});
  torch::nn::Linear net(4, 3);
  const torch::NoGradGuard no_grad;

  // Ranks get equally many samples; the last may be padding, which does not count.
  const lockstep::DistributedSampler sampler(samples, world, {.shuffle = false});
  auto own = torch::tensor(sampler.indices()).narrow(0, 0, sampler.num_unpadded());
  double right = 0, loss = 0;
  std::vector<torch::Tensor> answers;
  for (const auto& rows : own.split(32)) {
    const auto scores = net(x.index_select(0, rows));
    const auto target = targets.index_select(0, rows);
    answers.push_back(scores.argmax(1));
    right += (answers.back() == target).sum().item<double>();
    loss += torch::cross_entropy_loss(scores, target).item<double>() *
            static_cast<double>(rows.size(0));
  }

  // One reduction joins the sums of all ranks.
  const auto sums = lockstep::global_sums(
      group, {{"right", right}, {"loss", loss}, {"samples", static_cast<double>(own.size(0))}});
  // Rows of all ranks, rank 0's first; ranks may have different numbers of rows.
  const auto all_answers = lockstep::gather_rows(group, torch::cat(answers));

  if (world.rank != 0) return 0;
  std::printf("right: %.0f of %.0f, loss %.6f, answers %ld\n", sums.at("right"), sums.at("samples"),
              sums.at("loss") / sums.at("samples"), all_answers.size(0));
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("evaluation", evaluate, argc, argv);
}
