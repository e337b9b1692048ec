#pragma once
// The real programs, run in their own folder: lockstep run, lockstep train, lockstep data.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"

namespace lockstep::inline internal {

inline std::string lockstep_program() {
  return std::string(std::getenv("LOCKSTEP_BIN_DIR")) + "/lockstep";
}

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
  std::string marked{};  ///< `out` with the launcher's [RANK] before each line.
};

/// A step of this network on small images costs a quarter of one of ResNet-18, a checkpoint a
/// seventh.
inline constexpr auto kConfig = R"(system:
  log_interval: 1
  val_while_train: True
model:
  type: cls
  network: {name: mobilenet_v3_small}
  head: {num_classes: 10}
scheduler: {scheduler: one_cycle, lr: 0.02, num_epochs: 3}
optimizer: {opt: momentum, nesterov: True, weight_decay: 1e-4}
train:
  ckpt_save_dir: out
  dataset:
    data_dir: data
    transform_pipeline: [{RandomCrop: }, {RandomHorizontalFlip: }, {NormalizeImage: }]
  loader: {batch_size: 8, drop_remainder: True}
eval:
  dataset:
    transform_pipeline: [{NormalizeImage: }]
  loader: {batch_size: 16}
)";

inline constexpr auto kResnet18 = "backbone: {name: resnet18, stem: imagenet}";

/// kConfig with another network: `network: {name: ...}` or `backbone: {name: ...}`.
inline std::string config_of(const std::string& network) {
  const std::string usual = "network: {name: mobilenet_v3_small}";
  std::string text = kConfig;
  return text.replace(text.find(usual), usual.size(), network);
}

inline int text_count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A folder with a configuration and a small generated data set; programs run in it.
class Program : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new TempFolder;
    const std::string command = lockstep_program() +
                                " data cifar10 --generate --records 100 --dir " +
                                (*shared_ / "data").string() + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static void TearDownTestSuite() { delete shared_; }

  void SetUp() override {
    write_file_atomically(folder_ / "c.yaml", std::string_view(kConfig));
    std::filesystem::create_directory_symlink(*shared_ / "data", folder_ / "data");
  }

  /// Runs `command` with the shell, in this test's folder.
  Outcome run(const std::string& command, int limit_s = 100) const {
    const std::string line = "cd " + folder_.path().string() +
                             " && export OMP_NUM_THREADS=1 && timeout " + std::to_string(limit_s) +
                             " " + command + " >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(("bash -c '" + line + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "stdout.txt"),
            read_file(folder_ / "stderr.txt")};
  }
  Outcome train(const std::string& args, int ranks = 1) const {
    const std::string launcher =
        ranks == 1 ? "" : " run --nproc_per_node " + std::to_string(ranks) + " -- lockstep";
    const std::string path =
        "env PATH=" + std::filesystem::path(lockstep_program()).parent_path().string() + ":$PATH ";
    auto outcome = run(path + lockstep_program() + launcher + " train -c c.yaml " + args);
    outcome.marked = outcome.out;
    // Removes the launcher's prefix of a rank's lines.
    outcome.out = std::regex_replace(outcome.out, std::regex("(^|\\n)\\[[0-9]+\\][: ]*"), "$1");
    return outcome;
  }

  /// One rank under torchrun, after `restarts` restarts.
  Outcome torchrun(int restarts, const std::string& options) const {
    return run(
        "env RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none "
        "TORCHELASTIC_RESTART_COUNT=" +
        std::to_string(restarts) + " " + lockstep_program() +
        " train -c c.yaml -o train.loader.batch_size=2 system.val_while_train=False "
        "train.max_steps=2 " +
        options);
  }

  std::string bytes(const std::string& file) const { return read_file(folder_ / file); }

  TempFolder folder_;
  static inline TempFolder* shared_ = nullptr;
};

class ProgramOf : public Program, public ::testing::WithParamInterface<int> {};

/// Step and loss of each training step, as text.
inline std::vector<std::string> losses_of(const std::filesystem::path& folder) {
  std::vector<std::string> losses;
  for (const MetricsRecord& record : read_metrics(folder / "metrics.jsonl")) {
    losses.push_back(fmt::format("{} {:a}", record.step, record.values.at(0).second));
  }
  return losses;
}

}  // namespace lockstep::inline internal
