#include "lockstep/checkpoint_folder.h"
#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "tests/support/broken_folders.h"
#include "tests/support/error_of.h"
#include "tests/support/ordinary_user.h"
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

TEST(CheckpointFolder, IsAnErrorIfTheDiskBreaksInMidFolder) {
  const TempFolder dir;
  for (const int64_t step : {1, 2, 3, 4}) publish(dir.path(), step);
  {
    const testing::BrokenFolders broken(EIO);
    const Error error = error_of([&] { find_checkpoint(dir.path()); });
    EXPECT_EQ(error.code(), ErrorCode::kIo) << "an earlier checkpoint would be taken";
    EXPECT_EQ(std::string(error.what()), "list " + dir.path().string() + ": Input/output error");
    remove_leftovers(dir.path());  // the next run tidies what this one does not see
  }
  EXPECT_EQ(find_checkpoint(dir.path()), dir / "step_000004");
}

TEST(CheckpointFolder, WeightsAreAFileOrThoseThatWereEvaluated) {
  const TempFolder dir;
  publish(dir.path(), 1);
  const fs::path step = dir / "step_000001";
  EXPECT_EQ(weights_in(dir / "none.ckpt", true), dir / "none.ckpt");
  EXPECT_EQ(weights_in(dir.path(), true), step / kModelFile);
  write_file_atomically(step / kEmaFile, std::string_view("x"));
  EXPECT_EQ(weights_in(dir.path(), true), step / kEmaFile);
  EXPECT_EQ(weights_in(step, false), step / kModelFile);
}

/// A process of this host that no longer exists.
WriterName dead_writer() {
  WriterName name = WriterName::own();
  ++name.start;  // this process came later
  return name;
}

TEST(CheckpointFolder, RemovesLeftoversOnly) {
  const TempFolder dir;
  publish(dir.path(), 1);
  WriterName elsewhere = dead_writer();
  elsewhere.host = "other";
  const std::string left = ".tmp-" + dead_writer().text();
  const std::string lives = ".step_000003.tmp-" + WriterName::own().text();
  const std::string far = ".step_000003.tmp-" + elsewhere.text();
  fs::create_directories(dir / (".step_000002" + left + "/sub"));
  fs::create_directories(dir / (".step_000001-old" + left));
  fs::create_symlink("step_000001", dir / (".latest" + left));
  write_file_atomically(dir / (".best.ckpt" + left), std::string_view("x"));
  write_file_atomically(dir / (".best.ckpt" + left + ".tmp-77"), std::string_view("x"));
  for (const auto& name : {lives, far, std::string(".mine.tmp-x"), std::string(".mine")}) {
    fs::create_directories(dir / name);
  }
  point_link(dir.path(), "latest", "step_000001");
  remove_leftovers(dir.path());
  std::vector<std::string> stay = {lives, far, ".mine.tmp-x", ".mine", "latest", "step_000001"};
  std::sort(stay.begin(), stay.end());
  EXPECT_EQ(names_in(dir.path()), stay);
  remove_leftovers(dir / "none");
}

TEST(WriterName, IsReadBack) {
  const WriterName name{"0011aabb", 12, "node-3", 0xfeed, 77, 123456789};
  EXPECT_EQ(name.text(), "0011aabb+12+node-3+feed+77+123456789");
  EXPECT_EQ(WriterName::parse(name.text()), name);
  EXPECT_EQ(WriterName::parse(name.text() + ".tmp-77"), name);
  for (const char* other : {"", "77", "a+b", "a+x+h+1+1+1", "a+1+h+1+1+", "a+1+h+1+1+1+1"}) {
    EXPECT_FALSE(WriterName::parse(other)) << other;
  }
  EXPECT_EQ(WriterName::own("job", 3).generation, 3);
  EXPECT_NE(WriterName::own("job", 3).job, WriterName::own("bob", 3).job);
}

// As on NFS, where a file that a process has open keeps its folder.
TEST(RemoveCheckpoint, WhatCannotBeDeletedIsHiddenAndEndsNothing) {
  const TempFolder dir;
  fs::permissions(dir.path(), fs::perms(0777));
  const fs::path old = dir / "step_000001";
  fs::create_directory(old);
  write_file_atomically(old / "state.json", "{}");
  ASSERT_TRUE(::geteuid() != 0 || ::chown(old.c_str(), testing::kOrdinaryUser, 0) == 0);
  fs::permissions(old, fs::perms(0500));
  testing::as_ordinary_user([&] { EXPECT_NO_THROW(remove_checkpoint(dir.path(), "step_000001")); });
  EXPECT_FALSE(has_checkpoint(dir.path()));
  const auto left = fs::directory_iterator(dir.path())->path();
  EXPECT_TRUE(left.filename().string().starts_with("."));
  fs::permissions(left, fs::perms(0700));
}

/// Ends with 0 if a checkpoint of an image's layer is removed from a container's file system.
void remove_from_image(const fs::path& root) {
  const auto mounted = [](const char* type, const fs::path& at, const std::string& options) {
    return ::mount(type, at.c_str(), type, 0, options.c_str()) == 0;
  };
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0) {
    std::_Exit(2);
  }
  if (!mounted("tmpfs", root, "")) std::_Exit(3);
  for (const char* folder : {"image/step_000001", "own", "work", "seen"}) {
    fs::create_directories(root / folder);
  }
  write_file_atomically(root / "image/step_000001/state.json", "{}");
  const auto layers = fmt::format(
      "lowerdir={0}/image,upperdir={0}/own,workdir={0}/work,redirect_dir=off", root.string());
  if (!mounted("overlay", root / "seen", layers)) std::_Exit(4);
  try {
    remove_checkpoint(root / "seen", "step_000001");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(5);
  }
  std::_Exit(fs::is_empty(root / "seen") ? 0 : 6);
}

TEST(RemoveCheckpoint, OfAnImageBelowAContainersOwnLayerAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount; scripts/test.sh sees to it";
  const TempFolder root;
  EXPECT_EXIT(remove_from_image(root.path()), ::testing::ExitedWithCode(0), "");
}

TEST(WriterName, IsLeftOverWhenItsGenerationOrItsProcessIsGone) {
  const WriterName second = WriterName::own("job", 2);
  EXPECT_FALSE(is_left_over(second, second));
  EXPECT_TRUE(is_left_over(WriterName::own("job", 1), second)) << "though it lives";
  EXPECT_FALSE(is_left_over(WriterName::own("job", 3), second));
  EXPECT_FALSE(is_left_over(WriterName::own("other", 1), second));
  EXPECT_FALSE(is_left_over(WriterName::own(), WriterName::own("", 1))) << "no job at all";
  EXPECT_TRUE(is_left_over(dead_writer(), second));
  WriterName elsewhere = dead_writer();
  elsewhere.pid_space = 1;
  EXPECT_FALSE(is_left_over(elsewhere, second)) << "nobody can tell";
}

TEST(WriterFence, AnOlderGenerationGivesNoNamesAnyMore) {
  const TempFolder dir;
  const WriterFence first(dir.path(), "job", 1);
  StagedFolder half(dir.path(), "step_000001", first);
  write_file_atomically(half.path() / "state.json", "{}");
  const WriterFence second(dir.path(), "job", 2);
  EXPECT_EQ(error_of([&] { half.publish(); }).code(), ErrorCode::kMismatch);
  EXPECT_EQ(error_of([&] { point_link(dir.path(), "latest", "x", first); }).code(),
            ErrorCode::kMismatch);
  const auto fill = [](const fs::path& to) { write_file_atomically(to, "x"); };
  EXPECT_EQ(error_of([&] { replace_file(dir.path(), "e1.ckpt", first, fill); }).code(),
            ErrorCode::kMismatch);
  const Error error = error_of([&] { first.check(); });
  EXPECT_NE(std::string(error.what()).find("generation 2 of this job writes into"),
            std::string::npos)
      << error.what();
  EXPECT_FALSE(has_checkpoint(dir.path()));
  replace_file(dir.path(), "e1.ckpt", second, fill);
  EXPECT_EQ(read_file(dir / "e1.ckpt"), "x");
}

// The older one has passed its check when the newer one starts: its hidden folder is gone.
TEST(WriterFence, ANewerGenerationTakesTheHiddenFolderAway) {
  const TempFolder dir;
  const WriterFence first(dir.path(), "job", 1);
  StagedFolder half(dir.path(), "step_000001", first);
  first.check();
  const WriterFence second(dir.path(), "job", 2);
  remove_leftovers(dir.path(), second);
  EXPECT_FALSE(fs::exists(half.path()));
  EXPECT_EQ(error_of([&] { half.publish(); }).code(), ErrorCode::kMismatch);
  EXPECT_FALSE(has_checkpoint(dir.path()));
}

// A writer is stopped within a checkpoint and continues after another one has taken over.
TEST(WriterFence, AStoppedWriterThatWakesUpWritesNothing) {
  const TempFolder dir;
  const pid_t child = fork();
  if (child == 0) {
    const WriterFence first(dir.path(), "job", 1);
    StagedFolder half(dir.path(), "step_000007", first);
    write_file_atomically(half.path() / "state.json", "old");
    raise(SIGSTOP);
    try {
      half.publish();
    } catch (const Error& error) {
      _exit(error.code() == ErrorCode::kMismatch ? 3 : 4);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const WriterFence second(dir.path(), "job", 2);
  remove_leftovers(dir.path(), second);
  StagedFolder whole(dir.path(), "step_000007", second);
  write_file_atomically(whole.path() / "state.json", "new");
  whole.publish();
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(read_file(dir / "step_000007/state.json"), "new");
}

// Of another job, or of none: folders may be unlocked here.
TEST(WriterFence, ASecondWriterLeavesTheFirstsHalfAlone) {
  const TempFolder dir;
  const StagedFolder half(dir.path(), "step_000001");
  const WriterFence second(dir.path(), "another job", 1);
  remove_leftovers(dir.path(), second);
  EXPECT_TRUE(fs::exists(half.path()));
}

// As a pod's that was killed: its host is never seen again.
TEST(WriterFence, WhatNobodyHasWrittenForADayIsRemoved) {
  const TempFolder dir;
  WriterName elsewhere = dead_writer();
  elsewhere.pid_space = 1;
  const fs::path half = dir / (".step_000001.tmp-" + elsewhere.text());
  const fs::path fresh = dir / (".step_000002.tmp-" + elsewhere.text());
  const fs::path own = dir / (".step_000003.tmp-" + WriterName::own("other", 1).text());
  const auto days_ago = fs::file_time_type::clock::now() - std::chrono::hours(25);
  for (const fs::path& folder : {half, fresh, own}) {
    fs::create_directory(folder);
    write_file_atomically(folder / "state.json", "{}");
    if (folder != fresh) fs::last_write_time(folder / "state.json", days_ago);
    fs::last_write_time(folder, days_ago);
  }
  remove_leftovers(dir.path(), WriterFence(dir.path(), "job", 1));
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(fresh)) << "one of its files was written today";
  EXPECT_TRUE(fs::exists(own)) << "its process lives, and may be stopped";
}

TEST(WriterFence, ALaterGenerationThatComesLateFindsOut) {
  const TempFolder dir;
  const WriterFence third(dir.path(), "job", 3);
  EXPECT_EQ(error_of([&] { WriterFence(dir.path(), "job", 2); }).code(), ErrorCode::kMismatch);
  third.check();
  EXPECT_EQ(names_in(dir.path()).size(), 1U) << "one mark";
  const WriterFence again(dir.path(), "job", 1);  // a job of that name starts anew
  again.check();
  EXPECT_EQ(names_in(dir.path()).size(), 1U);
}

// Both reach the folder's server, and each has a generation of the same number.
TEST(WriterFence, OfTwoHalvesOfAJobOneStays) {
  const TempFolder dir;
  const WriterFence before(dir.path(), "job", 1, "launch-a");
  const WriterFence half(dir.path(), "job", 2, "launch-b");
  const Error error = error_of([&] { WriterFence(dir.path(), "job", 2, "launch-c"); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_NE(std::string(error.what()).find("another half of this job"), std::string::npos)
      << error.what();
  half.check();
  const WriterFence again(dir.path(), "job", 2, "launch-b");  // its results are here too
  again.check();
  const WriterFence third(dir.path(), "job", 3, "launch-c");
  EXPECT_EQ(error_of([&] { half.check(); }).code(), ErrorCode::kMismatch);
  EXPECT_EQ(names_in(dir.path()).size(), 1U) << "one mark";
}

// It was stopped before it had checked the folder, and given up.
TEST(WriterFence, ALateFirstGenerationTakesNothingAway) {
  const TempFolder dir;
  const WriterFence second(dir.path(), "job", 2, "launch-b");
  const auto refused = [&](const std::string& token) {
    return error_of([&] { Writer(dir.path(), "job", 1, token).check_before_mark(); }).code();
  };
  EXPECT_EQ(refused("launch-a"), ErrorCode::kMismatch);
  EXPECT_EQ(error_of([&] { WriterFence(dir.path(), "job", 1, "launch-a"); }).code(),
            ErrorCode::kMismatch);
  second.check();
  EXPECT_EQ(names_in(dir.path()).size(), 1U);
  Writer(dir.path(), "job", 1, "another-a").check_before_mark();
  Writer(dir / "none", "job", 1, "launch-a").check_before_mark();
  const WriterFence anew(dir.path(), "job", 1, "another-a");  // a job of that name starts anew
  anew.check();
  EXPECT_EQ(names_in(dir.path()).size(), 1U);
  EXPECT_EQ(read_file(dir / names_in(dir.path())[0]), "another-a");
}

TEST(CheckpointFolder, EqualFilesAreOne) {
  const TempFolder dir;
  write_file_atomically(dir / "a", "abc");
  ASSERT_TRUE(replace_by_link(dir.path(), "b", dir / "a", {}));
  ASSERT_TRUE(replace_by_link(dir.path(), "b", dir / "a", {}));
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fs::hard_link_count(dir / "a"), 2U);
  EXPECT_FALSE(replace_by_link(dir.path(), "c", dir / "none", {}));
}

TEST(CheckpointFolder, DigestsOfFiles) {
  const TempFolder dir;
  write_file_atomically(dir / "f", "abc");
  EXPECT_EQ(digest_file(dir / "f"),
            (FileDigest{3, "sha256",
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}));
  const FileDigest fast = {3, "poly1305", "b97c3be4d333cde05c7c44e19c564e3d"};
  EXPECT_EQ(digest_file(dir / "f", "poly1305"), fast);
  FileDigester in_parts;
  in_parts.update("a", 1);
  in_parts.update("bc", 2);
  EXPECT_EQ(in_parts.digest(), fast);
  EXPECT_EQ(error_of([&] { digest_file(dir / "g"); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
