// Training on a device other than the CPU: a guarded one, whose memory the host cannot read.

#include <gtest/gtest.h>

#include <array>

#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/tensor/support/guarded_device.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

Config of_device(const std::string& wish) {
  Config config;
  config.parallel.device = wish;
  return config;
}

TEST(ComputeDevice, IsTheRanksOwn) {
  World world;
  world.rank = world.device = 1;
  world.size = 2;
  EXPECT_EQ(choose_compute_device(of_device("auto"), world, true, 2).str(), "cuda:1");
  EXPECT_EQ(choose_compute_device(of_device("cuda"), world, true, 2).str(), "cuda:1");
  EXPECT_EQ(choose_compute_device(of_device("cpu"), world, true, 2).str(), "cpu");
  EXPECT_EQ(choose_compute_device(of_device("auto"), world, true, 0).str(), "cpu");
  Config with_virtual_ranks = of_device("auto");
  with_virtual_ranks.parallel.virtual_ranks = 2;
  EXPECT_EQ(choose_compute_device(with_virtual_ranks, world, true, 2).str(), "cpu");
}

TEST(ComputeDevice, OfAProgramAloneIsItsDeviceId) {
  Config config = of_device("auto");
  config.system.device_id = 1;
  const World world;
  EXPECT_EQ(choose_compute_device(config, world, false, 2).str(), "cuda:1");
  EXPECT_EQ(choose_compute_device(config, world, true, 2).str(), "cuda:0");  // DEVICE_ID=0
}

TEST(ComputeDevice, MustBeThere) {
  World world;
  world.rank = world.device = 1;
  world.size = 2;
  const Error none = error_of([&] { choose_compute_device(of_device("cuda"), world, true, 0); });
  EXPECT_EQ(none.code(), ErrorCode::kUnavailable);
  EXPECT_STREQ(none.what(),
               "parallel.device is cuda, but libtorch sees no CUDA device; set parallel.device=cpu "
               "or auto");
  const Error few = error_of([&] { choose_compute_device(of_device("auto"), world, true, 1); });
  EXPECT_EQ(few.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(few.what(),
               "rank 1 would compute on cuda:1, but sees 1 CUDA device: start fewer ranks on a "
               "host, or set parallel.device=cpu");
}

void move_away(int rank, TinyModel& model) {
  testing::move_to_guarded_device(model.parameters(), rank);
  testing::move_to_guarded_device(model.buffers(), rank);
  EXPECT_FALSE(model.device().is_cpu());
}

class Evaluated final : public Callback {
 public:
  explicit Evaluated(std::vector<double>& losses) : losses_(losses) {}
  void on_evaluation(Trainer& trainer, const EvalResult& result) override {
    if (trainer.rank() == 0) losses_.push_back(*result.loss);
  }

 private:
  std::vector<double>& losses_;
};

struct Outcome {
  TinyRun run;
  std::vector<double> evaluated;
};

/// Two ranks with all options that affect weights, gradients or batches.
Outcome train(const std::filesystem::path& dir, bool away, int64_t epochs, bool goes_on = false) {
  Config config = tiny_config();
  config.optimizer.opt = "adamw";
  config.scheduler.scheduler = "constant";  // does not depend on the end
  config.scheduler.num_epochs = epochs;
  config.train.clip_grad = true;
  config.train.ema = true;
  config.train.ckpt_save_dir = dir;
  config.system.val_while_train = true;
  config.system.drop_overflow_update = true;
  config.loss_scaler = LossScalerConfig{.dynamic = true, .loss_scale = 4};
  Outcome outcome;
  const auto data = std::make_shared<const TinyData>();
  TinyHooks hooks;
  if (away) hooks.move = move_away;
  if (goes_on) {
    hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
      return load_checkpoint(dir / "latest", model, optimizer, config.model.name());
    };
    hooks.ema_from = dir / "latest";
  }
  std::array<std::unique_ptr<Loader>, 2> loaders;
  std::array<std::vector<DistributedSampler>, 2> samplers;
  std::array<std::unique_ptr<TrainingLog>, 2> logs;
  hooks.add_callbacks = [&](Trainer& trainer) {
    const auto rank = static_cast<size_t>(trainer.rank());
    loaders[rank] = std::make_unique<Loader>(
        image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
        LoaderOptions{.batch_size = 5});
    samplers[rank].emplace_back(data->size(), trainer.rank(), 2, SamplerOptions{});
    logs[rank] = std::make_unique<TrainingLog>(TrainingLog::Options{{}, false});
    trainer.add(std::make_shared<Evaluation>(*loaders[rank], samplers[rank]));
    trainer.add(std::make_shared<Evaluated>(outcome.evaluated));
    trainer.add(std::make_shared<Checkpoints>(*logs[rank]));
  };
  outcome.run = run_tiny(2, config, hooks)[0];
  return outcome;
}

TEST(TrainerOnADevice, HasTheBitsOfTheCpu) {
  const TempFolder here, there;
  const auto cpu = train(here.path(), false, 4);
  const auto away = train(there.path(), true, 4);
  EXPECT_TRUE(same_weights(cpu.run, away.run));
  EXPECT_EQ(cpu.run.losses, away.run.losses);
  EXPECT_EQ(cpu.evaluated, away.evaluated);
  EXPECT_EQ(cpu.evaluated.size(), 4u);
  for (const auto& [name, tensor] : cpu.run.average) {
    EXPECT_TRUE(tensor.equal(away.run.average.at(name).cpu())) << name;
  }
}

TEST(TrainerOnADevice, GoesOnFromItsCheckpointAndFromOneOfTheCpu) {
  for (const bool first_away : {true, false}) {
    const TempFolder half, whole;
    train(half.path(), first_away, 2);
    const auto resumed = train(half.path(), true, 4, true);
    const auto at_once = train(whole.path(), false, 4);
    EXPECT_TRUE(same_weights(resumed.run, at_once.run)) << first_away;
  }
}

/// The images of TinyData as bytes; see Batch::byte_values.
class TinyBytes final : public BatchMaker {
 public:
  explicit TinyBytes(std::shared_ptr<const ImageDataset> data) : data_(std::move(data)) {
    const Normalize normalize;
    for (const auto& table : byte_tables(&normalize, 3)) {
      rows_.push_back(torch::tensor(std::vector<float>(table.begin(), table.end())));
    }
  }
  int64_t size() const override { return data_->size(); }
  Batch make(const BatchRows& rows) const override {
    std::vector<at::Tensor> images, labels;
    for (const int64_t index : rows.samples) {
      auto* bytes = const_cast<uint8_t*>(data_->image(index).data());
      images.push_back(torch::from_blob(bytes, {3, 4, 4}, at::kByte).permute({1, 2, 0}));
      labels.push_back(torch::tensor(data_->label(index)));
    }
    Batch batch{torch::stack(images), {torch::stack(labels)}, rows.num_counted};
    batch.byte_values = torch::stack(rows_);
    return batch;
  }

 private:
  std::shared_ptr<const ImageDataset> data_;
  std::vector<at::Tensor> rows_;
};

TEST(TrainerOnADevice, HasTheBitsOfFloatsFromBytes) {
  for (const int virtual_ranks : {0, 4}) {  // with 4 a rank takes two batches
    Config config = tiny_config();
    config.parallel.virtual_ranks = virtual_ranks;
    TinyHooks hooks;
    const auto floats = run_tiny(2, config, hooks)[0];
    if (virtual_ranks == 0) hooks.move = move_away;  // virtual ranks are the CPU's
    hooks.batches = [](auto data) { return std::make_unique<TinyBytes>(std::move(data)); };
    const auto bytes = run_tiny(2, config, hooks)[0];
    EXPECT_TRUE(same_weights(floats, bytes)) << virtual_ranks;
    EXPECT_EQ(floats.losses, bytes.losses) << virtual_ranks;
  }
}

/// Compares loss and gradient of an output on the CPU and on a guarded device.
void expect_same_loss(Loss& loss, const at::Tensor& output,
                      const std::vector<at::Tensor>& targets) {
  std::vector<at::Tensor> values;
  for (const bool away : {false, true}) {
    const at::Device device = away ? testing::guarded_device(0) : at::Device(at::kCPU);
    Batch batch{.images = output, .targets = targets};
    batch.move_to(device);
    const at::Tensor own = batch.images.detach().requires_grad_();
    const at::Tensor value = loss(own, batch.targets);
    EXPECT_EQ(value.device(), device);
    value.backward();
    values.insert(values.end(), {value.detach().cpu(), own.grad().cpu()});
  }
  EXPECT_TRUE(values[0].allclose(values[2])) << values[0] << values[2];
  EXPECT_TRUE(values[1].allclose(values[3]));
  EXPECT_GT(values[1].abs().sum().item<double>(), 0);
}

TEST(LossOnADevice, OfDetection) {
  torch::manual_seed(3);
  const auto loss = make_db_loss({});
  const at::Tensor text = (torch::rand({2, 16, 16}) < 0.2).to(at::kFloat);
  const at::Tensor mask = (torch::rand({2, 16, 16}) < 0.9).to(at::kFloat);
  expect_same_loss(*loss, torch::rand({2, 3, 16, 16}),
                   {text.unsqueeze(1), mask, torch::rand({2, 16, 16}), mask});
}

TEST(LossOnADevice, OfRecognition) {
  torch::manual_seed(3);
  const auto loss = make_ctc_loss({.pred_seq_len = 8, .max_label_len = 4});
  const at::Tensor labels = torch::tensor({{1, 2, 3, 5}, {0, 4, 5, 5}}, at::kInt);
  expect_same_loss(*loss, torch::randn({8, 2, 6}), {labels});
}

}  // namespace
}  // namespace lockstep
