#include "lockstep/train/weight_files.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/file.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

std::vector<int64_t> epochs_of(const std::vector<EpochWeights>& files) {
  std::vector<int64_t> epochs;
  for (const auto& file : files) epochs.push_back(file.epoch);
  return epochs;
}

const std::vector<EpochWeights> kFour = {{1, 0.5}, {2, 0.9}, {3, 0.9}, {4, 0.1}};

TEST(WeightFiles, KeepsTheBestTheNewestOrAll) {
  using Epochs = std::vector<int64_t>;
  EXPECT_EQ(epochs_of(weights_to_keep(kFour, {Keep::kTopK, 3, true})), (Epochs{3, 2, 1}));
  EXPECT_EQ(epochs_of(weights_to_keep(kFour, {Keep::kTopK, 2, false})), (Epochs{4, 1}));
  EXPECT_EQ(epochs_of(weights_to_keep(kFour, {Keep::kLatest, 2, true})), (Epochs{4, 3}));
  EXPECT_EQ(epochs_of(weights_to_keep(kFour, {Keep::kAll, 1, true})), (Epochs{4, 3, 2, 1}));
  const std::vector<EpochWeights> no_number = {{1, 0.5}, {2, std::nan("")}, {3, 0.9}};
  EXPECT_EQ(epochs_of(weights_to_keep(no_number, {Keep::kTopK, 2, false})), (Epochs{1, 3}));
}

std::vector<std::string> names_in(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(WeightFiles, TheFormatOfMindsporeIsWrittenOverAndOver) {
  const TempFolder dir;
  WeightFiles files(dir.path(), "ckpt", {Keep::kLatest, 1, true}, {});
  for (int i = 0; i < 2; ++i) {
    const TensorMap weights = {{"head.weight", torch::full({2}, i)}};
    files.save_epoch({1, 0.5}, weights);
    files.save_best(weights);
    EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"best.ckpt", "e1.ckpt"}));
    const auto read = read_weights(files.best_path()).at("head.weight");
    EXPECT_TRUE(read.to(torch::kFloat).equal(torch::full({2}, i).to(torch::kFloat)));
  }
}

TEST(WeightFiles, AnEpochThatIsEvaluatedLaterTakesItsValue) {
  const TempFolder dir;
  WeightFiles files(dir.path(), "safetensors", {.keep = Keep::kTopK, .count = 2}, {});
  const TensorMap weights = {{"w", at::ones({2})}};
  files.save_epoch({1, 0.5}, weights);
  files.save_epoch({2, kUnevaluated}, weights);
  files.save_epoch({2, 0.7}, weights);
  EXPECT_EQ(files.kept(), (std::vector<EpochWeights>{{2, 0.7}, {1, 0.5}}));
  EXPECT_TRUE(std::filesystem::exists(dir / "e1.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(dir / "e2.safetensors"));
}

// 1e-8 would be the least error.
TEST(WeightFiles, AnEpochWithoutAValueIsNeverTheLeast) {
  const TempFolder dir;
  const TensorMap weights = {{"w", at::ones({2})}};
  const KeepPolicy policy{.keep = Keep::kTopK, .count = 2, .higher_is_better = false};
  const std::vector<EpochWeights> three = {{1, 0.5}, {2, kUnevaluated}, {3, 0.25}};
  {
    WeightFiles files(dir.path(), "safetensors", policy, {});
    for (const auto& epoch : three) files.save_epoch(epoch, weights);
    EXPECT_EQ(files.kept(), (std::vector<EpochWeights>{{3, 0.25}, {1, 0.5}}));
    files.save_epoch({2, 0.75}, weights);
    EXPECT_EQ(epochs_of(files.kept()), (std::vector<int64_t>{3, 1}));
  }
  write_file_atomically(dir / "e2.safetensors", "");
  const WeightFiles resumed(dir.path(), "safetensors", policy, three);
  EXPECT_EQ(epochs_of(resumed.kept()), (std::vector<int64_t>{3, 1}));
}

TensorMap weights_of(int64_t epoch) {
  return {{"head.weight", at::full({2}, static_cast<float>(epoch))}};
}

/// The epoch whose weights_of() the best file has.
int64_t best_epoch(const WeightFiles& files) {
  const auto weights = read_weights(files.best_path()).at("head.weight");
  return static_cast<int64_t>(weights[0].item<float>());
}

TEST(WeightFiles, AnEarlierEpochBecomesTheBest) {
  for (const std::string format : {"ckpt", "safetensors"}) {
    const TempFolder dir;
    WeightFiles files(dir.path(), format, {.keep = Keep::kAll}, {});
    for (const int64_t epoch : {1, 2}) files.save_epoch({epoch, 0.5}, weights_of(epoch));
    EXPECT_FALSE(files.name_best(3));
    EXPECT_FALSE(std::filesystem::exists(files.best_path())) << "there is no such epoch";
    for (const int64_t epoch : {1, 2}) {
      EXPECT_TRUE(files.name_best(epoch));
      EXPECT_EQ(best_epoch(files), epoch) << format;
    }
    EXPECT_TRUE(std::filesystem::exists(files.path_of(1)));
  }
}

TEST(WeightFiles, AFullDiskLeavesTheFilesThatWereThere) {
  const TensorMap small = {{"head.weight", torch::ones({2})}};
  const TensorMap large = {{"head.weight", torch::zeros({1 << 14})}};
  for (const std::string format : {"ckpt", "safetensors"}) {
    const TempFolder dir;
    WeightFiles files(dir.path(), format, {Keep::kLatest, 1, true}, {});
    files.save_epoch({1, 0.5}, small);
    files.save_best(small);
    {
      const FileSizeLimit full(1 << 14);
      const auto error = error_of([&] { files.save_epoch({2, 0.6}, large); });
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_NE(std::string(error.what()).find("e2." + format), std::string::npos) << error.what();
      EXPECT_EQ(error_of([&] { files.save_best(large); }).code(), ErrorCode::kIo);
    }
    EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"best." + format, "e1." + format}));
    const auto read = read_weights(files.best_path()).at("head.weight");
    EXPECT_TRUE(read.to(torch::kFloat).equal(small.at("head.weight")));
  }
}

TEST(WeightFiles, FilesAreThoseThatThePolicyKeeps) {
  const TempFolder dir;
  const TensorMap weights = {{"w", torch::tensor({1.0F, 2.0F})}};
  {
    WeightFiles files(dir.path(), "safetensors", {Keep::kTopK, 2, true}, {});
    for (const auto& epoch : kFour) files.save_epoch(epoch, weights);
    files.save_best(weights);
  }
  const std::vector<std::string> expected = {"best.safetensors", "e2.safetensors",
                                             "e3.safetensors"};
  EXPECT_EQ(names_in(dir.path()), expected);
  EXPECT_TRUE(load_tensors(dir / "best.safetensors").tensors.at("w").equal(weights.at("w")));
  // A resumed run counts the existing files.
  WeightFiles resumed(dir.path(), "safetensors", {Keep::kTopK, 2, true}, kFour);
  EXPECT_EQ(epochs_of(resumed.kept()), (std::vector<int64_t>{3, 2}));
  resumed.save_epoch({5, 0.95}, weights);
  EXPECT_EQ(epochs_of(resumed.kept()), (std::vector<int64_t>{5, 3}));
  EXPECT_FALSE(std::filesystem::exists(resumed.path_of(2)));
}

TEST(WeightFiles, ANumberThatIsNoneTakesNoOthersPlace) {
  const TempFolder dir;
  const TensorMap weights = {{"w", torch::tensor({1.0F})}};
  WeightFiles newest(dir.path(), "ckpt", {Keep::kLatest, 2, true}, {});
  const double none = std::nan("");
  for (const EpochWeights& epoch : {EpochWeights{1, 0.5}, {2, none}, {3, 0.9}}) {
    newest.save_epoch(epoch, weights);
  }
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"e2.ckpt", "e3.ckpt"}));
  const std::vector<EpochWeights> infinite = {{1, 0.5}, {2, HUGE_VAL}, {3, 0.9}};
  EXPECT_EQ(epochs_of(weights_to_keep(infinite, {Keep::kTopK, 2, true})),
            (std::vector<int64_t>{3, 1}));
}

}  // namespace
}  // namespace lockstep
