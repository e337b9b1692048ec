#include "lockstep/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void publish(const fs::path& dir, int64_t step, std::optional<double> metric = {}) {
  TrainingState state;
  state.step = step;
  state.metric_value = metric;
  StagedFolder staged(dir, step_folder_name(step));
  write_file_atomically(staged.path() / "state.json", encode_training_state(state, {}));
  staged.publish();
}

std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(dir)) names.push_back(item.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFolder, NamesSortByStep) {
  EXPECT_EQ(step_folder_name(20), "step_000020");
  EXPECT_EQ(step_folder_name(12'345'678), "step_12345678");
}

TEST(CheckpointFolder, ListsByStepWithMetric) {
  const TempFolder dir;
  publish(dir / "run", 1'000'000, 0.5);
  publish(dir / "run", 20);
  fs::create_directories(dir / "run/step_000030");  // without state.json
  fs::create_directories(dir / "run/step_x");       // not ours
  fs::create_directories(dir / "run/.step_000040.tmp-1");
  const auto entries = list_checkpoints(dir / "run");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].step, 20);
  EXPECT_FALSE(entries[0].metric);
  EXPECT_EQ(entries[1].name, "step_1000000");
  EXPECT_EQ(entries[1].metric, 0.5);
  EXPECT_TRUE(list_checkpoints(dir / "none").empty());
}

TEST(CheckpointFolder, ADamagedOneIsListedWithoutMetric) {
  const TempFolder dir;
  publish(dir.path(), 1, 0.5);
  write_file_atomically(dir / "step_000001/state.json", "{");
  ASSERT_EQ(list_checkpoints(dir.path()).size(), 1u);
  EXPECT_FALSE(list_checkpoints(dir.path())[0].metric);
}

TEST(CheckpointFolder, AnotherMetricIsListedAsNone) {
  const TempFolder dir;
  publish(dir.path(), 1, 0.5);
  ASSERT_EQ(list_checkpoints(dir.path(), "acc").size(), 1u);
  EXPECT_FALSE(list_checkpoints(dir.path(), "acc")[0].metric);
}

TEST(CheckpointFolder, UnpublishedLeavesNothing) {
  const TempFolder dir;
  { const StagedFolder staged(dir.path(), "step_000001"); }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(CheckpointFolder, ReplacesAnOlderOneOfTheSameStep) {
  const TempFolder dir;
  publish(dir.path(), 1, 0.25);
  publish(dir.path(), 1, 0.75);
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"step_000001"});
  EXPECT_EQ(list_checkpoints(dir.path())[0].metric, 0.75);
}

TEST(CheckpointFolder, FindsByFolderLinkOrNewest) {
  const TempFolder dir;
  EXPECT_FALSE(has_checkpoint(dir.path()));
  EXPECT_EQ(error_of([&] { find_checkpoint(dir.path()); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "none"); }).code(), ErrorCode::kNotFound);
  write_file_atomically(dir / "best.ckpt", "weights");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "best.ckpt"); }).code(),
            ErrorCode::kInvalidArgument);
  publish(dir.path(), 1);
  publish(dir.path(), 2);
  EXPECT_TRUE(has_checkpoint(dir.path()));
  EXPECT_EQ(find_checkpoint(dir.path()), dir / "step_000002");
  EXPECT_EQ(find_checkpoint(dir / "step_000001"), dir / "step_000001");
  point_link(dir.path(), "latest", "step_000001");
  EXPECT_EQ(find_checkpoint(dir.path()), dir / "step_000001");
  point_link(dir.path(), "latest", "step_000002");
  EXPECT_EQ(fs::read_symlink(dir / "latest"), "step_000002");
  remove_checkpoint(dir.path(), "step_000002");
  EXPECT_EQ(find_checkpoint(dir.path()), dir / "step_000001") << "the link dangles";
  EXPECT_EQ(find_checkpoint(dir / "step_000001"), dir / "step_000001");
}

TEST(CheckpointFolder, WeightsAreAFileOrThoseThatWereJudged) {
  const TempFolder dir;
  publish(dir.path(), 1);
  const fs::path step = dir / "step_000001";
  EXPECT_EQ(weights_in(dir / "none.ckpt", true), dir / "none.ckpt");
  EXPECT_EQ(weights_in(dir.path(), true), step / kModelFile);
  write_file_atomically(step / kEmaFile, std::string_view("x"));
  EXPECT_EQ(weights_in(dir.path(), true), step / kEmaFile);
  EXPECT_EQ(weights_in(step, false), step / kModelFile);
}

TEST(CheckpointFolder, RemovesLeftoversOnly) {
  const TempFolder dir;
  publish(dir.path(), 1);
  fs::create_directories(dir / ".step_000002.tmp-77/sub");
  fs::create_directories(dir / ".step_000001.tmp-77-old");
  fs::create_symlink("step_000001", dir / ".latest.tmp-77");
  fs::create_directories(dir / ".mine");
  for (const char* name : {"best.ckpt.tmp-77", "e12.safetensors.tmp-77", "e.ckpt.tmp-77",
                           "best.ckpt", "estimate.ckpt.tmp-77"}) {
    write_file_atomically(dir / name, std::string_view("x"));
  }
  point_link(dir.path(), "latest", "step_000001");
  remove_leftovers(dir.path());
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{".mine", "best.ckpt", "e.ckpt.tmp-77", "estimate.ckpt.tmp-77",
                                      "latest", "step_000001"}));
  remove_leftovers(dir / "none");
}

TEST(CheckpointFolder, DigestIsSha256) {
  const TempFolder dir;
  write_file_atomically(dir / "f", "abc");
  const FileDigest digest = digest_file(dir / "f");
  EXPECT_EQ(digest.bytes, 3);
  EXPECT_EQ(digest.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(error_of([&] { digest_file(dir / "g"); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
