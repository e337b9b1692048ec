// Runs with a teacher, with several metrics, and with event files.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/event_reader.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

void fill(torch::nn::Module& model, double from) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    parameter.copy_((torch::arange(parameter.numel()) + from).reshape_as(parameter).sin() / 4);
  }
}

/// A configuration of a trained TinyModel as the teacher, whose weights lie in `dir`.
DistillationConfig taught(const TempFolder& dir) {
  TinyModel teacher(true);
  fill(teacher, 100);
  save_tensors(dir / "teacher.safetensors", module_tensors(teacher));
  DistillationConfig config;
  config.teacher.network =
      OwnPart<NetworkMaker>{"tiny", [](int64_t) { return std::make_shared<TinyModel>(true); }};
  config.teacher.pretrained = dir / "teacher.safetensors";
  config.weight = 1;
  return config;
}

TinyHooks with_equal_starts() {
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) { fill(model, 0); };
  return hooks;
}

// The labels have no part, so the loss falls as the network comes near to its teacher.
TEST(Distillation, ANetworkLearnsFromItsTeacherOnAnyNumberOfRanks) {
  const TempFolder dir;
  auto config = tiny_config();
  config.loss = taught(dir);
  config.scheduler.lr = 0.2;
  config.parallel.virtual_ranks = 2;
  config.train.loader.batch_size = 2;
  const auto one = run_tiny(1, config, with_equal_starts())[0];
  const auto two = run_tiny(2, config, with_equal_starts())[0];
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_TRUE(same_weights(one, two));
  EXPECT_LT(one.epoch_losses.back(), one.epoch_losses.front() * 0.9);
}

TEST(Distillation, ItsTeacherStaysAsItWasAndIsNoPartOfTheNetwork) {
  const TempFolder dir;
  auto config = tiny_config();
  config.loss = taught(dir);
  config.optimizer.weight_decay = 0.1;
  config.train.ckpt_save_dir = dir / "out";
  TrainingLog log({.file = {}, .console = false});
  auto hooks = with_equal_starts();
  at::Tensor first, last;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    struct Teaches final : Callback {
      Teaches(at::Tensor& before, at::Tensor& after) : before_(before), after_(after) {}
      /// The loss of a network that gives nothing depends on the teacher alone.
      static at::Tensor told(Trainer& asked) {
        Batch batch;
        batch.images = torch::ones({3, 3, 4, 4});
        batch.targets = {torch::tensor({1, 2, 3})};
        return asked.task().loss_of(batch, {torch::zeros({3, kTinyClasses})});
      }
      void on_begin(Trainer& asked) override { before_ = told(asked); }
      void on_end(Trainer& asked) override { after_ = told(asked); }
      at::Tensor& before_;
      at::Tensor& after_;
    };
    trainer.add(std::make_shared<Teaches>(first, last));
  };
  run_tiny(1, config, hooks);
  EXPECT_TRUE(first.equal(last));
  const TinyModel alone(true);
  EXPECT_EQ(load_tensors(dir / "out/latest/model.safetensors").tensors.size(),
            module_tensors(alone).size());
}

TEST(Distillation, ATeachersDigestIsOfItsStatisticsToo) {
  const TempFolder dir, other;
  auto config = tiny_config();
  EXPECT_EQ(make_task(config)->teacher_digest(), 0U);
  config.loss = taught(dir);
  const auto digest = make_task(config)->teacher_digest();
  EXPECT_NE(digest, 0U);
  EXPECT_EQ(make_task(config)->teacher_digest(), digest);
  const auto elsewhere = taught(other);
  config.loss = elsewhere;
  EXPECT_EQ(make_task(config)->teacher_digest(), digest) << "a copy";
  auto tensors = load_tensors(elsewhere.teacher.pretrained).tensors;
  tensors.at("norm.running_mean").add_(1);
  save_tensors(elsewhere.teacher.pretrained, tensors);
  EXPECT_NE(make_task(config)->teacher_digest(), digest);
}

TEST(Distillation, ATeacherWithoutItsFileIsNamedAtTheStart) {
  const TempFolder dir;
  auto config = tiny_config();
  auto loss = taught(dir);
  loss.teacher.pretrained = dir / "none.safetensors";
  config.loss = loss;
  const auto error = error_of([&] { run_tiny(1, config); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error.what()).find("none.safetensors are not there"), std::string::npos)
      << error.what();
}

/// The data of a rank's evaluations, in batches of 4.
struct EvaluatedData {
  std::shared_ptr<const TinyData> data = std::make_shared<const TinyData>(23);
  std::vector<DistributedSampler> samplers;
  Loader loader{image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                {.batch_size = 4}};
  explicit EvaluatedData(Trainer& trainer)
      : samplers{{data->size(), trainer.rank(), trainer.num_ranks(), {.shuffle = false}}} {}
};

/// Runs with results, checkpoints and evaluations.
class RecordedRun {
 public:
  explicit RecordedRun(int ranks) : data_(static_cast<size_t>(ranks)) {}

  TinyHooks hooks() {
    auto hooks = with_equal_starts();
    hooks.add_callbacks = [this](Trainer& trainer) {
      auto& data = data_[static_cast<size_t>(trainer.rank())];
      data = std::make_unique<EvaluatedData>(trainer);
      const std::vector<std::string> classes = {"zero", "one"};
      trainer.add(std::make_shared<Results>(std::nullopt, WriterFence(), classes));
      trainer.add(std::make_shared<Checkpoints>(log_));
      trainer.add(std::make_shared<Evaluation>(data->loader, data->samplers));
    };
    return hooks;
  }

 private:
  std::vector<std::unique_ptr<EvaluatedData>> data_;  // each rank its own
  TrainingLog log_{{.file = {}, .console = false}};
};

Config recorded_config(const TempFolder& dir) {
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.system.val_while_train = true;
  return config;
}

TEST(SeveralMetrics, AreInAllFilesAndTheFirstFigureRanks) {
  std::vector<std::vector<std::pair<std::string, double>>> figures;
  for (const int ranks : {1, 2}) {
    const TempFolder dir;
    auto config = recorded_config(dir);
    config.parallel.virtual_ranks = 2;
    config.train.loader.batch_size = 2;
    config.metric.names = {"AucMetric", "ClsMetric", "F1Metric"};
    config.metric.main_indicator = "auc";
    RecordedRun run(ranks);
    const auto state = run_tiny(ranks, config, run.hooks())[0].state;
    const std::vector<std::string> names = {"auc", "acc", "top_5", "f1", "precision", "recall"};
    auto& own = figures.emplace_back();
    double best = 0;
    for (const auto& record : read_metrics(dir / "metrics.jsonl")) {
      if (record.kind != "eval") continue;
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(record.values[i].first, names[i]);
        own.push_back(record.values[i]);
      }
      EXPECT_TRUE(record.value("loss"));
      EXPECT_EQ(record.value("samples"), 23);
      best = std::max(best, record.value("auc").value());
    }
    EXPECT_EQ(own.size(), 4 * names.size());
    ASSERT_TRUE(state.best);
    EXPECT_EQ(state.best->value, best);
    EXPECT_TRUE(
        read_file(dir / "result.log")
            .starts_with("Epoch\tloss\tauc\tacc\ttop_5\tf1\tprecision\trecall\ttrain_time"));
  }
  EXPECT_EQ(figures[0], figures[1]);
}

TEST(Confusion, OfTheLastEvaluationIsInTheResults) {
  const TempFolder dir;
  const auto config = recorded_config(dir);
  RecordedRun run(2);
  run_tiny(2, config, run.hooks());
  const auto lines = split(read_file(dir / "confusion.csv"), '\n');
  const auto classes = static_cast<size_t>(kTinyClasses);
  ASSERT_EQ(lines.size(), classes + 2);  // with the heading and the end
  EXPECT_EQ(lines[0], "true class,zero,one,2,3,4,5,6,7,8,9\r");
  int64_t samples = 0, right = 0;
  for (size_t truth = 0; truth < classes; ++truth) {
    const auto cells = split(lines[1 + truth], ',');
    for (size_t i = 1; i < cells.size(); ++i) samples += std::stoll(cells[i]);
    right += std::stoll(cells[1 + truth]);
  }
  EXPECT_EQ(samples, 23);
  const auto last = read_metrics(dir / "metrics.jsonl").back();
  EXPECT_EQ(last.value("acc"), static_cast<double>(right) / 23);
  EXPECT_NE(read_file(dir / "confusion.svg").find(", epoch 4: 23 samples<"), std::string::npos);
}

/// What TensorBoard shows: the files in the order of their names; the begin of a session drops what
/// earlier files have from its step on.
std::vector<std::pair<int64_t, float>> shown_scalars(const std::filesystem::path& folder,
                                                     const std::string& tag) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::pair<int64_t, float>> shown;
  for (const auto& path : paths) {
    for (const auto& event : testing::EventReader::read(read_file(path))) {
      if (event.starts_session) {
        std::erase_if(shown, [&](const auto& one) { return one.first >= event.step; });
      }
      const auto found = event.scalars.find(tag);
      if (found != event.scalars.end()) shown.emplace_back(event.step, found->second);
    }
  }
  return shown;
}

/// Ends a run as a fault would, after so many steps.
class FailsAfter final : public Callback {
 public:
  explicit FailsAfter(int64_t step) : step_(step) {}
  void on_step(Trainer&, const StepReport& report) override {
    if (report.optimizer_steps == step_) throw Error(ErrorCode::kInternal, "a fault");
  }

 private:
  int64_t step_;
};

// Saved after 6 steps, failed after 9, and resumed: steps 7 to 9 are done again.
TEST(EventFiles, OfARunThatWentOnShowEachStepOnce) {
  const TempFolder dir;
  auto config = recorded_config(dir);
  config.system.tensorboard = true;
  RecordedRun run(1);
  auto hooks = run.hooks();
  const auto add = hooks.add_callbacks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    add(trainer);
    trainer.add(std::make_shared<FailsAfter>(9));
  };
  EXPECT_EQ(error_of([&] { run_tiny(1, config, hooks); }).code(), ErrorCode::kInternal);
  EXPECT_EQ(shown_scalars(dir / "tensorboard", "train/loss").size(), 9U);
  hooks.add_callbacks = add;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  run_tiny(1, config, hooks);
  const auto losses = shown_scalars(dir / "tensorboard", "train/loss");
  const auto evaluated = shown_scalars(dir / "tensorboard", "eval/acc");
  std::vector<std::pair<int64_t, float>> wanted, wanted_acc;
  for (const auto& record : read_metrics(dir / "metrics.jsonl")) {
    const bool eval = record.kind == "eval";
    (eval ? wanted_acc : wanted)
        .emplace_back(record.step, static_cast<float>(record.value(eval ? "acc" : "loss").value()));
  }
  EXPECT_EQ(losses.size(), 24U);
  EXPECT_EQ(losses, wanted);
  EXPECT_EQ(evaluated, wanted_acc);
}

}  // namespace
}  // namespace lockstep
