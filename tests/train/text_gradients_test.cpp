// The gradients of detector and recogniser for one global batch of four virtual ranks, on one, two
// and four ranks. Without virtual ranks they would differ: DBLoss's parts are ratios over a batch,
// and batch norm normalizes over one batch.

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/parallel/module_state.h"
#include "tests/models/specs.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

constexpr int kVirtualRanks = 4;

/// The training data of a network: a batch for each virtual rank.
struct Lesson {
  ModelSpec spec;
  std::function<std::unique_ptr<Loss>()> make_loss;
  std::vector<at::Tensor> images;
  std::vector<std::vector<at::Tensor>> targets;
};

Lesson detector() {
  torch::manual_seed(1);
  Lesson lesson{dbnet("det_resnet18"), [] { return make_db_loss({}); }, {}, {}};
  lesson.spec.neck.out_channels = 32;
  for (int virtual_rank = 0; virtual_rank < kVirtualRanks; ++virtual_rank) {
    lesson.images.push_back(at::randn({1, 3, 64, 64}));
    // Virtual ranks differ in their share of text, so that ratios of means are not means of ratios.
    const auto text = at::rand({1, 64, 64}).lt(0.1 * (virtual_rank + 1)).to(at::kFloat);
    const auto counts = at::rand({1, 64, 64}).lt(0.9).to(at::kFloat);
    lesson.targets.push_back({text.unsqueeze(1), counts, at::rand({1, 64, 64}), counts});
  }
  return lesson;
}

Lesson recogniser() {
  torch::manual_seed(2);
  Lesson lesson{crnn("rec_vgg7", 37, 16),
                [] { return make_ctc_loss({.pred_seq_len = 24, .max_label_len = 23}); },
                {},
                {}};
  for (int virtual_rank = 0; virtual_rank < kVirtualRanks; ++virtual_rank) {
    lesson.images.push_back(at::randn({2, 3, 32, 100}));
    const auto texts = at::full({2, 23}, 36, at::kInt);
    texts.narrow(1, 0, virtual_rank + 2).copy_(at::randint(36, {2, virtual_rank + 2}, at::kInt));
    lesson.targets.push_back({texts});
  }
  return lesson;
}

/// By name, of the first step from the same weights; checks that the ranks' are equal.
std::map<std::string, at::Tensor> gradients_on(int ranks, const Lesson& lesson) {
  std::vector<std::shared_ptr<Model>> models;
  for (int rank = 0; rank < ranks; ++rank) {
    torch::manual_seed(3);
    models.push_back(build_model(lesson.spec));
  }
  std::vector<std::map<std::string, at::Tensor>> gradients(models.size());
  testing::run_rank_threads(ranks, [&](const World& world) {
    const auto& model = models[static_cast<size_t>(world.rank)];
    model->train();
    DistributedDataParallel ddp(model, ProcessGroup::create(world),
                                {.virtual_ranks = kVirtualRanks});
    const auto loss = lesson.make_loss();
    ddp.for_each_virtual_rank([&](int virtual_rank) {
      const auto part = static_cast<size_t>(virtual_rank);
      (*loss)(ddp.forward(lesson.images[part]), lesson.targets[part]).backward();
    });
    for (const auto& [name, tensor] : parameters_of(*model)) {
      gradients[static_cast<size_t>(world.rank)][name] = tensor.grad().clone();
    }
  });
  for (const auto& own : gradients) {
    for (const auto& [name, gradient] : own) {
      EXPECT_TRUE(gradient.equal(gradients[0].at(name))) << name << " on " << ranks << " ranks";
    }
  }
  return gradients[0];
}

void expect_equal_gradients(const Lesson& lesson) {
  at::set_num_threads(1);
  const auto one = gradients_on(1, lesson);
  const auto is_known = [](const auto& item) {
    return item.second.norm().template item<double>() > 0;
  };
  EXPECT_GT(std::count_if(one.begin(), one.end(), is_known), 10);
  for (const int ranks : {2, 3, 4}) {
    for (const auto& [name, gradient] : gradients_on(ranks, lesson)) {
      const auto& alone = one.at(name);
      const auto size = alone.norm().item<double>();
      EXPECT_LE((gradient - alone).norm().item<double>(), 1e-5 * size) << name << ", " << ranks;
    }
  }
}

TEST(TextGradients, OfADetectorDoNotDependOnTheNumberOfRanks) {
  expect_equal_gradients(detector());
}

TEST(TextGradients, OfARecogniserDoNotDependOnTheNumberOfRanks) {
  expect_equal_gradients(recogniser());
}

}  // namespace
}  // namespace lockstep
