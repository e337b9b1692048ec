// With a fixed parallel.virtual_ranks, a run's weights, optimizer state and losses have the same
// bits on any number of ranks and any transport. Ranks are processes.
#include <ATen/Parallel.h>
#include <ATen/ops/dropout.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::HostLayout;

/// 96 pictures of 3 x 8 x 8.
class SmallPictures final : public ImageDataset {
 public:
  SmallPictures() : bytes_(96 * 192) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const size_t image = i / 192;
      bytes_[i] = static_cast<uint8_t>(image * 7 % 10 * 20 + (i * 2654435761u >> 9) % 60);
    }
  }
  int64_t size() const override { return 96; }
  ImageShape shape() const override { return {3, 8, 8}; }
  int64_t label(int64_t index) const override { return index * 7 % 10; }
  int64_t num_classes() const override { return 10; }
  std::span<const uint8_t> image(int64_t index) const override {
    return {bytes_.data() + index * 192, 192};
  }

 private:
  std::vector<uint8_t> bytes_;
};

/// Batch norm from the net; dropout in front of it.
class WithDropout final : public Model {
 public:
  explicit WithDropout(std::shared_ptr<Model> net) : net_(register_module("net", std::move(net))) {}
  at::Tensor forward(at::Tensor input) override {
    return net_->forward(at::dropout(input, 0.1, is_training()));
  }

 private:
  std::shared_ptr<Model> net_;
};

/// The same, with the mean of the columns in their place: padding counts, and draws random numbers.
class OverColumns final : public Model {
 public:
  explicit OverColumns(std::shared_ptr<Model> net) : net_(register_module("net", std::move(net))) {}
  at::Tensor forward(at::Tensor input) override {
    const auto kept = at::dropout(input, 0.1, is_training());
    return net_->forward(kept.mean(3, /*keepdim=*/true).expand({-1, -1, -1, 4}));
  }

 private:
  std::shared_ptr<Model> net_;
};

/// Pictures of 1 to 4 columns, padded to the widest of the batch: one in twelve has 4.
class OwnWidths final : public BatchMaker {
 public:
  explicit OwnWidths(std::unique_ptr<const BatchMaker> pictures) : pictures_(std::move(pictures)) {}
  int64_t size() const override { return pictures_->size(); }
  Batch make(const BatchRows& rows) const override {
    Batch batch = pictures_->make(rows);
    int64_t widest = 0;
    for (int64_t row = 0; row < std::ssize(rows.samples); ++row) {
      const int64_t sample = rows.samples[static_cast<size_t>(row)];
      const int64_t width = sample % 12 == 0 ? 4 : 1 + sample % 3;
      batch.images[row].slice(2, width).zero_();
      widest = std::max(widest, width);
    }
    batch.images = batch.images.narrow(3, 0, widest).contiguous();
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> pictures_;
};

struct Job {
  Config config;
  bool resnet = false;
  bool own_widths = false;
  int64_t overflow_at = 0;  ///< The micro-step (from 1) with infinite gradients.
  fs::path resume{};        ///< Folder of the checkpoint to resume from.
};

Job small_job() {
  Job job;
  job.config = tiny_config();
  job.config.optimizer.opt = "momentum";
  job.config.optimizer.weight_decay = 1e-3;
  job.config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  job.config.train.clip_grad = true;
  job.config.scheduler.num_epochs = 1000;
  job.config.train.max_steps = 20;
  job.config.parallel.virtual_ranks = 8;
  return job;
}

/// `virtual_ranks`: of this rank.
std::shared_ptr<Model> make_net(const Job& job, int virtual_ranks) {
  torch::manual_seed(5);
  if (!job.resnet) {
    const auto net = std::make_shared<TinyModel>(true);
    net->overflows = [&job, virtual_ranks](int64_t call) {
      return (call - 1) / virtual_ranks + 1 == job.overflow_at;
    };
    if (job.own_widths) return std::make_shared<OverColumns>(net);
    return std::make_shared<WithDropout>(net);
  }
  ModelSpec spec{.backbone = {.name = "resnet18"}, .head = {.num_classes = 10}};
  if (job.config.system.amp_level != AmpLevel::kO0) spec.backbone.stem = Stem::kCifar;
  return std::make_shared<WithDropout>(build_model(spec));
}

void append(std::string& bytes, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
}

/// Weights, statistics and their average, optimizer state and losses; a finite loss at the end.
std::string result_of(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                      const Ema* ema, const TinyRun& run) {
  if (!std::isfinite(run.losses.back())) throw Error(ErrorCode::kDiverged, "no finite loss");
  const std::hash<std::string> digest;
  std::string tensors;
  for (const auto& tensor : model.parameters()) append(tensors, tensor);
  for (const auto& tensor : model.buffers()) append(tensors, tensor);
  if (ema) {
    for (const auto& [name, tensor] : ema->state()) append(tensors, tensor);
  }
  std::string memory;
  for (const auto& [name, tensor] : optimizer_tensors(model, optimizer)) append(memory, tensor);
  std::string losses;
  for (const double loss : run.losses) losses += fmt::format("{}\n", loss);
  return fmt::format("{:016x}\n{:016x}\n{}", digest(tensors), digest(memory), losses);
}

std::vector<DistributedSampler> samplers_of(const VirtualRankRange& virtual_ranks, int64_t size) {
  std::vector<DistributedSampler> samplers;
  for (int virtual_rank = virtual_ranks.first;
       virtual_rank < virtual_ranks.first + virtual_ranks.count; ++virtual_rank) {
    samplers.emplace_back(size, virtual_rank, virtual_ranks.total);
  }
  return samplers;
}

std::unique_ptr<const BatchMaker> batches_of_job(const Job& job) {
  const auto data = std::make_shared<const SmallPictures>();
  const int64_t size = job.resnet ? 8 : 4;
  const ImageTransform transform({RandomCrop{size, 2}, RandomHorizontalFlip{}, Normalize{}},
                                 data->shape(), 3);
  auto pictures = image_batches(data, transform);
  if (!job.own_widths) return pictures;
  return std::make_unique<OwnWidths>(std::move(pictures));
}

/// One rank's run. Writes its results to DIR/rank_R, and checkpoints of small nets to DIR.
void run_rank(const World& world, Job job, const fs::path& dir) {
  job.config.train.ckpt_save_dir = dir;
  const Config& config = job.config;
  set_threads(threads_of(config.parallel, world));
  auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(200)});
  const VirtualRankRange virtual_ranks = virtual_ranks_of(config, world);
  const auto model = make_net(job, virtual_ranks.count);
  freeze_parameters(config.optimizer, *model);
  const auto masters = make_masters(config.system.amp_level, *model);
  torch::nn::Module& weights = masters ? masters->module() : *model;
  const auto optimizer = make_optimizer(config.optimizer, weights, config.scheduler.lr);
  auto batches = batches_of_job(job);
  auto samplers = samplers_of(virtual_ranks, batches->size());
  Loader loader(std::move(batches),
                {.batch_size = config.train.loader.batch_size, .parts = virtual_ranks.count});
  TrainingState state;
  if (!job.resume.empty()) {
    state = load_checkpoint(job.resume, weights, *optimizer, config.model.name());
    if (masters) masters->publish_all();
  }
  std::unique_ptr<Ema> ema;
  if (config.train.ema) ema = std::make_unique<Ema>(weights, config.train.ema_decay);
  TinyRun run;
  const auto task = make_task(config);
  Trainer trainer({config, world.rank, world.size, group, model, *optimizer, *task, loader,
                   samplers, [] { return 0; }, masters.get(), ema.get()},
                  state);
  TrainingLog log({.file = {}, .console = false});
  trainer.add(std::make_shared<Recorder>(run));
  if (!job.resnet) trainer.add(std::make_shared<Checkpoints>(log));
  trainer.fit();
  auto result = result_of(trainer.weights(), *optimizer, ema.get(), run);
  if (job.own_widths) {
    Loader evaluated(batches_of_job(job), {.batch_size = 5});
    result += fmt::format("{}\n",
                          evaluate(*model, evaluated, samplers, group, *task).value().loss.value());
  }
  write_file_atomically(dir / fmt::format("rank_{}", world.rank), result);
}

/// The result of every rank, which must be the same.
std::string result_on(const HostLayout& hosts, const Job& job, const fs::path& dir) {
  const auto ends = testing::run_rank_processes(
      hosts, [&](World world) { run_rank(world, job, dir); }, std::chrono::seconds(250));
  for (const int end : ends) EXPECT_EQ(end, 0) << "of " << ends.size();
  std::string result;
  for (size_t rank = 0; rank < ends.size() && !::testing::Test::HasFailure(); ++rank) {
    const auto own = read_file(dir / fmt::format("rank_{}", rank));
    if (rank == 0) result = own;
    EXPECT_EQ(own, result) << "rank " << rank << " of " << ends.size();
  }
  return result;
}

std::string result_on(const HostLayout& hosts, const Job& job) {
  const TempFolder dir;
  return result_on(hosts, job, dir.path());
}

/// The lines of `result` from line `first` on.
std::string tail(const std::string& result, int first) {
  size_t at = 0;
  for (int line = 0; line < first; ++line) at = result.find('\n', at) + 1;
  return result.substr(at);
}

// Alone, in shared memory, over TCP between hosts, and both. Each step costs half a second, in two
// epochs of 6 and into a third; the next test covers all layouts of hosts, and 50 steps.
TEST(TrainVirtualRanks, Resnet18OverEpochsHasTheSameBitsOnAnyRanks) {
  Job job = small_job();
  job.resnet = true;
  job.config.optimizer.weight_decay = 0;
  job.config.scheduler.lr = 0.01;
  job.config.train.clip_grad = false;
  job.config.train.max_steps = 13;
  const auto one = result_on({1}, job);
  for (const HostLayout& hosts : {HostLayout{2}, {3}, {1, 1, 1, 1}, {3, 5}}) {
    EXPECT_EQ(result_on(hosts, job), one) << hosts.size() << " hosts";
  }
}

TEST(TrainVirtualRanks, EveryNumberOfRanksOnEveryTransport) {
  Job job = small_job();
  job.config.train.max_steps = 50;
  const auto one = result_on({1}, job);
  const HostLayout eight_hosts(8, 1);
  for (const HostLayout& hosts : {HostLayout{2},
                                  {3},
                                  {4},
                                  {5},
                                  {7},
                                  {8},
                                  {1, 1},
                                  {1, 1, 1, 1},
                                  eight_hosts,
                                  {1, 3},
                                  {2, 2},
                                  {4, 4},
                                  {3, 4, 1}}) {
    EXPECT_EQ(result_on(hosts, job), one) << hosts.size() << " hosts";
  }
}

// The same steps are dropped.
TEST(TrainVirtualRanks, MixedPrecisionHasTheSameBitsOnAnyRanks) {
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2, AmpLevel::kO3}) {
    Job job = small_job();
    job.config.parallel.virtual_ranks = 4;
    job.config.system.amp_level = level;
    job.config.system.drop_overflow_update = true;
    job.config.loss_scaler = LossScalerConfig{.dynamic = true, .loss_scale = 512};
    job.overflow_at = 7;
    const auto one = result_on({1}, job);
    for (const HostLayout& hosts : {HostLayout{2}, {3}, {4}, {1, 1}}) {
      EXPECT_EQ(result_on(hosts, job), one) << to_string(level) << " on " << hosts.size();
    }
    job.overflow_at = 0;
    EXPECT_NE(result_on({1}, job), one);
  }
}

// It uses the stem for small images. With the other one the input of layer 4 is one pixel, for
// which oneDNN 2.6 computes a 3x3 kernel's bfloat16 gradient from uninitialised memory. Batches of
// 8: for 2 values that are equal in bfloat16 the slope of batch norm is almost infinite. Epochs
// have 3 steps.
TEST(TrainVirtualRanks, Resnet18InMixedPrecisionToo) {
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2}) {
    Job job = small_job();
    job.resnet = true;
    job.config.parallel.virtual_ranks = 4;
    job.config.scheduler.lr = 0.01;
    job.config.train.loader.batch_size = 8;
    job.config.train.max_steps = 4;
    job.config.system.amp_level = level;
    const auto one = result_on({1}, job);
    for (const HostLayout& hosts : {HostLayout{2}, {1, 1, 1, 1}}) {
      EXPECT_EQ(result_on(hosts, job), one) << to_string(level) << " on " << hosts.size();
    }
  }
}

TEST(TrainVirtualRanks, AccumulationAndShortBatchesToo) {
  Job job = small_job();
  job.config.train.loader.batch_size = 5;
  job.config.train.gradient_accumulation_steps = 2;
  const auto one = result_on({1}, job);
  for (const HostLayout& hosts : {HostLayout{2}, {3}, {8}, {2, 2}, {2, 4}}) {
    EXPECT_EQ(result_on(hosts, job), one);
  }
}

// Each virtual rank's batch is made alone. An epoch has micro-steps of 6, 6 and 4 samples.
TEST(TrainVirtualRanks, PaddingToTheLongestSampleToo) {
  Job job = small_job();
  job.own_widths = true;
  job.config.parallel.virtual_ranks = 6;
  job.config.train.loader.batch_size = 6;
  job.config.train.gradient_accumulation_steps = 2;
  const auto one = result_on({1}, job);
  for (const HostLayout& hosts : {HostLayout{2}, {3}, {4}, {6}}) {
    EXPECT_EQ(result_on(hosts, job), one) << hosts.front() << " ranks";
  }
}

// An epoch of 6 batches has optimizer steps of 4 and of 2 of them. Between them the average is
// updated, too.
TEST(TrainVirtualRanks, TheMovingAverageToo) {
  for (const auto level : {AmpLevel::kO0, AmpLevel::kO2}) {
    Job job = small_job();
    job.config.system.amp_level = level;
    job.config.train.gradient_accumulation_steps = 4;
    job.config.train.ema = true;
    job.config.train.ema_decay = 0.99;
    job.config.train.max_steps = 9;
    const auto one = result_on({1}, job);
    for (const HostLayout& hosts : {HostLayout{2}, {3}, {4}, {1, 1}}) {
      EXPECT_EQ(result_on(hosts, job), one) << to_string(level) << " on " << hosts.size();
    }
  }
}

// Three ranks have 3, 2 and 2 of 7.
TEST(TrainVirtualRanks, AnyNumberOfThem) {
  Job job = small_job();
  job.config.parallel.virtual_ranks = 7;
  job.config.train.gradient_accumulation_steps = 2;
  job.config.train.ema = true;
  job.config.train.max_steps = 8;
  const auto one = result_on({1}, job);
  for (const HostLayout& hosts : {HostLayout{2}, {3}, {4}, {1, 4}, {7}}) {
    EXPECT_EQ(result_on(hosts, job), one) << hosts.size() << " hosts";
  }
}

// 10 steps end within an epoch of 6.
TEST(TrainVirtualRanks, GoingOnWithOtherRanksGivesTheBitsOfTheWholeRun) {
  const TempFolder dir;
  Job job = small_job();
  const auto whole = result_on({1}, job);
  job.config.train.max_steps = 10;
  result_on({5}, job, dir.path());
  job.config.train.max_steps = 20;
  job.resume = dir.path() / "step_000010";
  for (const HostLayout& hosts : {HostLayout{1}, {2}, {3}, {1, 1}, {1, 2}, {8}}) {
    const auto rest = result_on(hosts, job, dir.path());
    EXPECT_EQ(rest.substr(0, 34), whole.substr(0, 34));
    EXPECT_EQ(tail(rest, 2), tail(whole, 12));
  }
}

}  // namespace
}  // namespace lockstep
