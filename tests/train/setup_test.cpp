#include "lockstep/train/setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/comm_hook.h"
#include "lockstep/error.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run/run_log.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/signals.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/identity.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path make_checkpoint(const fs::path& folder, std::string_view state) {
  fs::create_directories(folder);
  write_file_atomically(folder / "state.json", state);
  return folder;
}

TEST(MoveEarlierResults, TakesAnyWayToWriteTheFolder) {
  const TempFolder dir;
  int number = 0;
  for (const auto* name : {"run", "run/", "run//", "./run/."}) {
    make_checkpoint(dir / "run/step_000001", "{}");
    const auto moved = dir / ("run." + std::to_string(++number));
    EXPECT_EQ(move_earlier_results(dir / name), moved) << name;
    EXPECT_TRUE(fs::exists(moved / "step_000001/state.json")) << name;
    EXPECT_FALSE(fs::exists(dir / "run")) << name;
  }
  EXPECT_EQ(move_earlier_results(dir / "run/"), "");
}

// Neither "." nor a mount point can be renamed.
TEST(MoveEarlierResults, AFolderThatCannotBeMovedIsEmptied) {
  const TempFolder dir;
  const auto before = fs::current_path();
  fs::current_path(dir.path());
  for (int number = 1; number <= 2; ++number) {
    make_checkpoint("step_000001", "{}");
    for (const auto* name : {"e12.ckpt", "log_0.txt", "metrics.jsonl.1", "events.jsonl", ".job",
                             "args.yaml", "confusion_eval.csv", "tensorboard", "classes.txt.1"}) {
      write_file_atomically(name, "ours");
    }
    write_file_atomically("data.bin", "theirs");
    const auto moved = move_earlier_results(".");
    for (const auto* name : {"e12.ckpt", "log_0.txt", "metrics.jsonl.1", "events.jsonl", ".job",
                             "args.yaml", "confusion_eval.csv", "tensorboard", "classes.txt.1"}) {
      EXPECT_TRUE(fs::exists(moved / name) && !fs::exists(name)) << name;
    }
    EXPECT_TRUE(fs::exists("data.bin"));
    EXPECT_EQ(moved.filename(), "earlier." + std::to_string(number));
    EXPECT_TRUE(fs::exists(moved / "step_000001/state.json"));
    EXPECT_FALSE(fs::exists("step_000001"));
  }
  EXPECT_TRUE(fs::exists("earlier.1"));
  EXPECT_EQ(move_earlier_results("."), "");
  fs::current_path(before);
}

// The link selects the place of results, such as another disk: it stays.
TEST(MoveEarlierResults, AFolderThatIsALinkIsEmptied) {
  const TempFolder dir;
  for (const auto* name : {"link", "link/", "./link/."}) {
    SCOPED_TRACE(name);
    fs::remove_all(dir / "disk");
    fs::remove(dir / "link");
    fs::create_directory(dir / "disk");
    fs::create_directory_symlink("disk", dir / "link");
    make_checkpoint(dir / "link/step_000001", "{}");
    EXPECT_EQ(move_earlier_results(dir / name), without_slash(dir / name) / "earlier.1");
    EXPECT_TRUE(fs::is_symlink(dir / "link"));
    EXPECT_TRUE(fs::exists(dir / "disk/earlier.1/step_000001/state.json"));
    EXPECT_FALSE(fs::exists(dir / "disk/step_000001"));
    EXPECT_FALSE(fs::exists(dir / "link.1"));
  }
}

TEST(MorePadding, KeepsALastBatchFromBeingOneSample) {
  const LoaderConfig loader{.shuffle = true, .batch_size = 4, .drop_remainder = false};
  EXPECT_EQ(more_padding(24, 9, loader), 1);
  EXPECT_EQ(more_padding(24, 1, loader), 1);
  EXPECT_EQ(more_padding(24, 8, loader), 0);
  EXPECT_EQ(more_padding(25, 9, loader), 0) << "every epoch ends so";
  EXPECT_EQ(more_padding(24, 9, {.shuffle = true, .batch_size = 4, .drop_remainder = true}), 0);
  EXPECT_EQ(more_padding(24, 9, {.shuffle = true, .batch_size = 1, .drop_remainder = false}), 0);
}

/// Positions in epochs, of every step: one epoch of `samples` after another. Ranks take batches of
/// `batch`, and their number changes after the given numbers of steps.
std::vector<double> positions_of(const std::vector<std::pair<int, int>>& ranks_and_steps,
                                 int64_t samples, int64_t batch, bool drops) {
  const auto batches = [&](int64_t count, int64_t all) {
    return drops ? count / all : (count + all - 1) / all;
  };
  TrainingState state;
  std::vector<double> positions;
  for (const auto& [ranks, steps] : ranks_and_steps) {
    const int64_t all = batch * ranks;  // of a step
    const int64_t whole = batches(samples, all);
    recount(state, {ranks, whole, batches(samples - state.epoch_samples, all), samples});
    for (int step = 0; step < steps; ++step) {
      if (state.batch_in_epoch == whole) {
        ++state.epoch;
        state.batch_in_epoch = state.epoch_samples = 0;
        state.dealt_anew = false;
      }
      positions.push_back(schedule_position(state, whole, samples) / static_cast<double>(whole));
      ++state.batch_in_epoch;
      ++state.schedule_step;
      state.epoch_samples += all;
    }
  }
  return positions;
}

TEST(SchedulePosition, NeverGoesBackWhateverBecomesOfTheRanks) {
  using Changes = std::vector<std::pair<int, int>>;
  for (const auto& changes :
       {Changes{{1, 8}, {4, 3}}, Changes{{4, 2}, {1, 3}, {3, 1}, {2, 9}},
        Changes{{1, 6}, {4, 1}, {1, 9}, {4, 5}}, Changes{{3, 7}, {1, 4}, {2, 1}, {5, 6}}}) {
    for (const bool drops : {false, true}) {
      for (const int64_t samples : {24, 27, 101}) {
        const auto positions = positions_of(changes, samples, 3, drops);
        EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()))
            << fmt::format("{} samples, {}: {}", samples, drops, positions);
      }
    }
  }
}

TEST(ChangedSamples, AreSaidWithinAnEpochOfKnownSamples) {
  TrainingState state;
  state.epoch = 3;
  state.epoch_samples = 12;
  state.samples_digest = 5;
  EXPECT_NE(changed_samples_note(state, 6).find("of epoch 4, some may be used twice"),
            std::string::npos);
  EXPECT_EQ(changed_samples_note(state, 5), "");
  EXPECT_NE(changed_samples_note(state, 0), "") << "they have no weights any more";
  state.samples_digest = 0;
  EXPECT_NE(changed_samples_note(state, 6), "") << "they got weights";
  EXPECT_EQ(changed_samples_note(state, 0), "");
  state.samples_digest.reset();
  EXPECT_EQ(changed_samples_note(state, 6), "") << "a checkpoint of an early version";
  state.samples_digest = 5;
  state.epoch_samples = 0;
  EXPECT_EQ(changed_samples_note(state, 6), "") << "a whole epoch follows";
}

TEST(SchedulePosition, IsTheStepWhereNothingChanged) {
  TrainingState state;
  state.epoch = 3;
  state.schedule_step = 19;
  state.batch_in_epoch = 4;
  state.epoch_samples = 12;
  EXPECT_EQ(schedule_position(state, 5, 17), 19);
  EXPECT_FALSE(recount(state, {1, 5, 1, 17}));
  EXPECT_FALSE(state.dealt_anew);
  EXPECT_EQ(schedule_position(state, 5, 17), 19);
  EXPECT_TRUE(recount(state, {2, 3, 1, 17}));
  EXPECT_TRUE(state.dealt_anew);
  EXPECT_DOUBLE_EQ(schedule_position(state, 3, 17), (3 + 12.0 / 17) * 3);
}

/// After 20 steps of 16 virtual ranks, two epochs, of which 4 were dropped.
TrainingState with_drops() {
  TrainingState state;
  state.epoch = 2;
  state.virtual_ranks = 16;
  state.dropped_batches = 4;
  state.schedule_step = 16;
  return state;
}

// 16 x 16 samples are as many as 8 x 32. Batches may change alone, too.
TEST(SchedulePosition, DroppedStepsKeepTheirShareOfTheSteps) {
  const auto dropped = [](const EpochShape& shape) {
    auto state = with_drops();
    recount(state, shape);
    EXPECT_EQ(state.schedule_step, 2 * shape.steps_per_epoch - state.dropped_batches);
    return state.dropped_batches;
  };
  EXPECT_EQ(dropped({16, 10, 10, 2560}), 4);
  EXPECT_EQ(dropped({8, 10, 10, 2560}), 4);
  EXPECT_EQ(dropped({8, 20, 20, 2560}), 8);
  EXPECT_EQ(dropped({16, 5, 5, 2560}), 2);
}

// All 5 steps of one rank were dropped. Their samples are 1.25 of the 6 steps of four.
TEST(SchedulePosition, IsNeverBelow0) {
  TrainingState state;
  state.batch_in_epoch = state.epoch_samples = state.dropped_batches = 5;
  EXPECT_TRUE(recount(state, {4, 6, 4, 24}));
  EXPECT_EQ(state.dropped_batches, 1);
  EXPECT_DOUBLE_EQ(schedule_position(state, 6, 24), 0.25);
}

/// Ends the process by `second` after SIGTERM or SIGINT, `pause` later; returns its status.
int twice_signalled(int first, int second, std::chrono::milliseconds pause) {
  const pid_t child = fork();
  if (child == 0) {
    const SignalWatch watch;
    raise(first);
    std::this_thread::sleep_for(pause);
    raise(second);
    _exit(watch.pending() == first ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(SignalWatch, ASecondInterruptEndsTheProcess) {
  const auto later = std::chrono::milliseconds(600);
  for (const int first : {SIGINT, SIGTERM}) {
    const int status = twice_signalled(first, SIGINT, later);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  }
  EXPECT_EQ(WEXITSTATUS(twice_signalled(SIGTERM, SIGTERM, later)), 7) << "schedulers send several";
}

TEST(VirtualRanks, ALaterGenerationGoesOnWithoutWhereTheyAreFewerThanItsRanks) {
  Config config;
  config.parallel.virtual_ranks = 2;
  config.train.loader.batch_size = 5;
  World world;
  world.size = 3;
  EXPECT_EQ(leave_too_few_virtual_ranks(config, world), "");
  EXPECT_EQ(config.parallel.virtual_ranks, 2) << "in the first generation it is refused";
  world.generation = 2;
  const auto line = leave_too_few_virtual_ranks(config, world);
  EXPECT_NE(line.find("3 ranks cannot share 2 virtual ranks"), std::string::npos) << line;
  EXPECT_NE(line.find("The global batch is 15 samples"), std::string::npos) << line;
  EXPECT_EQ(config.parallel.virtual_ranks, 0);
  EXPECT_EQ(config.parallel.threads, 1);
  config.parallel.virtual_ranks = 4;
  EXPECT_EQ(leave_too_few_virtual_ranks(config, world), "");
  EXPECT_EQ(config.parallel.virtual_ranks, 4);
}

TEST(CheckResultsFolder, AsksForTheNearestFolderThatIsThere) {
  const TempFolder dir;
  check_results_folder(dir.path());
  check_results_folder(dir / "a/b/c/");
  EXPECT_FALSE(fs::exists(dir / "a"));
  write_file_atomically(dir / "file", "x");
  for (const auto* name : {"file", "file/out", "file/a/b/"}) {
    const auto error = error_of([&] { check_results_folder(dir / name); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.what(), fmt::format("train.ckpt_save_dir {} cannot hold the results: {} is no "
                                        "folder",
                                        (dir / name).string(), (dir / "file").string()));
  }
}

TEST(HoldResultsFolder, RefusesASecondRunAndSurvivesTheMove) {
  const TempFolder dir;
  const auto soon = [] { return Deadline::after(std::chrono::milliseconds(0)); };
  EXPECT_FALSE(hold_results_folder(dir / "run", soon()));
  make_checkpoint(dir / "run/step_000001", "{}");
  const auto held = hold_results_folder(dir / "run", soon());
  ASSERT_TRUE(held);
  const auto moved = move_earlier_results(dir / "run");
  EXPECT_THROW(hold_results_folder(moved, soon()), Error);
  fs::create_directories(dir / "run");
  EXPECT_TRUE(hold_results_folder(dir / "run", soon()));
}

TEST(ResumePlace, MindocrsFileIsItsFolder) {
  const TempFolder dir;
  EXPECT_EQ(resume_place(dir / "train_resume.ckpt"), dir.path());
  EXPECT_EQ(resume_place("train_resume.ckpt"), ".");
  EXPECT_EQ(resume_place(dir / "step_000010"), dir / "step_000010");
  write_file_atomically(dir / "train_resume.ckpt", "of MindSpore");
  EXPECT_EQ(resume_place(dir / "train_resume.ckpt"), dir / "train_resume.ckpt");
}

TEST(IsCheckpointOf, ComparesFoldersNotNames) {
  const TempFolder dir;
  const auto run = dir / "run";
  const auto checkpoint = make_checkpoint(run / "step_000001", "{}");
  fs::create_directory_symlink("step_000001", run / "latest");
  fs::create_directory_symlink("run", dir / "link");
  fs::create_directories(dir / "other");
  for (const auto& same : {checkpoint, run / "latest", run / "step_000001/", dir / "link/latest"}) {
    EXPECT_TRUE(is_checkpoint_of(same, run)) << same;
  }
  for (const auto& same : {run, dir / "run/", dir / "link", dir / "other/../run"}) {
    EXPECT_TRUE(is_checkpoint_of(checkpoint, same)) << same;
  }
  for (const auto& other : {dir / "other", dir / "none", dir.path(), checkpoint}) {
    EXPECT_FALSE(is_checkpoint_of(checkpoint, other)) << other;
  }
}

// The schema does not use libtorch, so it has its own list.
TEST(CommHookNames, OfTheConfigurationAreThoseThatCanBeMade) {
  Node tree = parse_yaml(R"(
model: {type: cls, backbone: {name: resnet18}, head: {num_classes: 10}}
train: {ckpt_save_dir: out, dataset: {data_dir: d}, loader: {batch_size: 1}}
parallel: {comm_hook: x}
)",
                         "a.yaml");
  const auto error = error_of([&] { read_config(std::move(tree)); });
  const auto wanted = fmt::format("must be one of {}, not 'x'", fmt::join(comm_hook_names(), ", "));
  EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
}

TEST(CheckClasses, OfTheDataMustFitTheModel) {
  ModelConfig model;
  model.head.num_classes = 10;
  check_classes(10, model);
  check_classes(3, model);
  model.head.num_classes = 3;
  const auto error = error_of([&] { check_classes(10, model); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "the data have 10 classes, model.head.num_classes is 3");
}

TEST(CheckWorld, RefusesMoreRanksThanVirtualRanks) {
  Config config;
  config.parallel.virtual_ranks = 12;
  World world;
  for (world.size = 1; world.size <= 12; ++world.size) check_world(config, world);
  EXPECT_STREQ(
      error_of([&] { check_world(config, world); }).what(),
      "parallel.virtual_ranks: 13 ranks cannot share 12 virtual ranks: each needs at least "
      "one; start at most 12 ranks, or take more virtual ranks");
  world.size = 4;
  config.parallel.virtual_ranks = 0;
  EXPECT_EQ(virtual_ranks_of(config, world), (VirtualRankRange{0, 1, 4}));
  check_world(config, world);
}

// The sum of two ranks has only one order.
TEST(CheckWorld, EnginesWithAnOrderOfTheirOwnAreNotForVirtualRanksOfMoreThanTwoRanks) {
  Config config;
  config.parallel.virtual_ranks = 4;
  World world;
  const std::set<std::string> ordered = {"auto", "native", "c10d:nccl", "hccl"};
  for (const char* backend : {"auto", "native", "c10d:nccl", "hccl", "mpi", "c10d:gloo"}) {
    config.parallel.backend = backend;
    world.size = 2;
    check_world(config, world);
    world.size = 4;
    if (ordered.contains(backend)) {
      check_world(config, world);
      continue;
    }
    const auto error = error_of([&] { check_world(config, world); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find(backend), std::string::npos) << error.what();
  }
  config.parallel.virtual_ranks = 0;
  check_world(config, world);
}

TEST(ThreadsOf, DoesNotDependOnTheRanksWithVirtualRanks) {
  World world;
  world.threads = 3;
  EXPECT_EQ(threads_of({}, world), 3);
  EXPECT_EQ(threads_of({.virtual_ranks = 8}, world), 1);
  EXPECT_EQ(threads_of({.virtual_ranks = 8, .threads = 2}, world), 2);
  EXPECT_EQ(threads_of({.threads = 1}, world), 1);
}

TEST(WorkersOf, AreTheCoresOfARank) {
  World world;
  EXPECT_EQ(workers_of(world), usable_cores());
  world.local_size = 2 * usable_cores();
  EXPECT_EQ(workers_of(world), 1);
  ::setenv(kCpuSharersVariable, "1", 1);  // each rank is bound to its own CPUs
  EXPECT_EQ(workers_of(world), usable_cores());
  ::unsetenv(kCpuSharersVariable);
}

/// Two ranks that resume from step 4 of these checkpoints.
void start(const fs::path& first, const fs::path& second) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    check_same_start(4, world.rank == 0 ? first : second, group);
  });
}

TEST(CheckSameStart, TellsCheckpointsOfTheSameStepApart) {
  const TempFolder dir;
  const auto a = make_checkpoint(dir / "a", "1");
  const auto same = make_checkpoint(dir / "same", "1");
  const auto b = make_checkpoint(dir / "b", "2");
  start(a, same);
  start({}, {});
  for (const auto& [other, text] :
       {std::pair<fs::path, std::string>{b, "from step 4 (state.json d4735e3a265e16ee)"},
        {{}, "from nothing"}}) {
    const auto error = error_of([&] { start(a, other); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what())
                  .find("rank 0 resumes from step 4 (state.json 6b86b273ff34fce1), rank 1 " + text),
              std::string::npos)
        << error.what();
  }
}

/// The error of each rank, with one learning rate per rank.
std::vector<std::string> errors_of_lrs(const std::vector<std::string>& lrs) {
  std::vector<std::string> errors(lrs.size());
  testing::run_rank_threads(static_cast<int>(lrs.size()), [&](const World& world) {
    const auto rank = static_cast<size_t>(world.rank);
    const Config config = read_config(parse_yaml(fmt::format(R"(
model: {{type: cls, backbone: {{name: resnet18}}, head: {{num_classes: 10}}}}
scheduler: {{lr: {}}}
train: {{ckpt_save_dir: out, dataset: {{data_dir: d{}}}, loader: {{batch_size: 1}}}}
)",
                                                             lrs[rank], rank),
                                                 "a.yaml"));
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    try {
      check_same_config(config, group);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      errors[rank] = error.what();
    }
  });
  return errors;
}

TEST(CheckSameConfig, EveryRankNamesTheKeyTheValuesAndTheRanks) {
  EXPECT_EQ(errors_of_lrs({"0.1", "1e-1", "0.10"}), std::vector<std::string>(3));
  EXPECT_EQ(errors_of_lrs({"0.1"}), std::vector<std::string>(1));
  EXPECT_EQ(errors_of_lrs({"0.1", "0.7"}),
            std::vector<std::string>(
                2, "the ranks differ: scheduler.lr is 0.7 on rank 1, 0.1 on rank 0"));
  EXPECT_EQ(errors_of_lrs({"0.1", "0.7", "0.1", "0.7"}),
            std::vector<std::string>(
                4, "the ranks differ: scheduler.lr is 0.7 on ranks 1, 3, 0.1 on ranks 0, 2"));
}

TEST(CheckSameSamples, EveryRankNamesWhoHasOthers) {
  struct Both {
    DataSamples train;
    DataSamples eval;
  };
  const auto errors = [](const std::vector<Both>& samples) {
    std::vector<std::string> said(samples.size());
    testing::run_rank_threads(static_cast<int>(samples.size()), [&](const World& world) {
      const auto rank = static_cast<size_t>(world.rank);
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      try {
        check_same_samples(samples[rank].train, samples[rank].eval, group);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        said[rank] = error.what();
      }
    });
    return said;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(errors({{{200, 7}, {20}}, {{200, 7}, {20}}, {{200, 7}, {20}}}), Lines(3));
  EXPECT_EQ(errors({{{200}, {20, 5}}, {{200}, {20, 6}}}),
            Lines(2,
                  "the ranks differ: the evaluation samples of rank 1 have other names, labels or "
                  "weights than those of rank 0; both need copies of the same data"));
  EXPECT_EQ(errors({{{200}, {20}}, {{200}, {20}}, {{170}, {20}}}),
            Lines(3,
                  "the ranks differ: rank 2 has 170 training samples, rank 0 has 200; is the "
                  "copy of the data of rank 2 complete?"));
  EXPECT_EQ(errors({{{0}, {10}}, {{0}, {20}}}),
            Lines(2,
                  "the ranks differ: rank 1 has 20 evaluation samples, rank 0 has 10; is the "
                  "copy of the data of rank 0 complete?"));
}

TEST(CheckSameTeacher, EveryRankNamesWhoHasAnother) {
  const auto errors = [](const std::vector<uint64_t>& digests) {
    std::vector<std::string> said(digests.size());
    testing::run_rank_threads(static_cast<int>(digests.size()), [&](const World& world) {
      const auto rank = static_cast<size_t>(world.rank);
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      try {
        check_same_teacher(digests[rank], group);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        said[rank] = error.what();
      }
    });
    return said;
  };
  EXPECT_EQ(errors({7, 7}), std::vector<std::string>(2));
  EXPECT_EQ(errors({7, 8, 8}),
            std::vector<std::string>(
                3,
                "the ranks differ: the teacher (loss.teacher.pretrained) of ranks 1, 2 has other "
                "weights than that of rank 0"));
}

TEST(CompareWeights, NamesTheRanksThatDifferFromRank0) {
  torch::manual_seed(1);
  torch::nn::Linear net(3, 2);
  const uint64_t before = weights_digest(*net);
  EXPECT_EQ(weights_digest(*net), before);
  const auto line = [&](const std::vector<uint64_t>& digests) {
    const bool same = std::set<uint64_t>(digests.begin(), digests.end()).size() == 1;
    std::string of_rank_0;
    testing::run_rank_threads(static_cast<int>(digests.size()), [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      const auto said = compare_weights(digests[static_cast<size_t>(world.rank)], group);
      EXPECT_EQ(said.same, same) << "rank " << world.rank;
      if (world.rank == 0) of_rank_0 = said.line;
    });
    return of_rank_0;
  };
  EXPECT_EQ(line({0xabcULL << 48, 0xabcULL << 48}), "Weights: 0abc000000000000 on all 2 ranks");
  EXPECT_EQ(line({1}), "Weights: 0000000000000001 on the one rank");
  EXPECT_EQ(line({1, 2, 1, 3}), "Weights: 0000000000000001 on rank 0, others on ranks 1, 3");
  const torch::NoGradGuard guard;
  net->bias[1] += 1;
  EXPECT_NE(weights_digest(*net), before);
}

DatasetConfig dataset_of(const std::vector<PictureStep>& steps, int64_t channels = 0) {
  DatasetConfig dataset;
  dataset.channels = channels;
  for (const auto& step : steps) dataset.transforms.push_back({step, "t.yaml:3"});
  return dataset;
}

TEST(SmallImagePipeline, TheStepsDecideWhichItIs) {
  const ImageShape cifar{3, 32, 32};
  const auto made = [&](const std::vector<PictureStep>& steps) {
    return make_small_image_pipeline(dataset_of(steps), cifar, 0);
  };
  const std::vector<std::vector<PictureStep>> at_once = {
      {},
      {RandomCrop{}, RandomHorizontalFlip{}, Normalize{}},
      {ResizePicture{64, {}}, Normalize{}}};
  for (const auto& steps : at_once) {
    EXPECT_TRUE(std::holds_alternative<ImageTransform>(made(steps))) << steps.size();
  }
  const std::vector<std::vector<PictureStep>> as_pictures = {
      {RandomCrop{}, RandAugment{}, Normalize{}},
      {Normalize{}, RandomErasing{}},
      {ResizePicture{40, {}}, RandomCrop{32, 0}, Normalize{}}};
  for (const auto& steps : as_pictures) {
    EXPECT_TRUE(std::holds_alternative<PicturePipeline>(made(steps))) << steps.size();
    EXPECT_EQ(output_shape(made(steps)), cifar);
  }
  EXPECT_EQ(output_shape(made({CenterCrop{{20, 24}}, ResizePicture{40, {}}})),
            (ImageShape{3, 48, 40}));
}

TEST(SmallImagePipeline, GreyImagesHaveTheChannelsOfTheNetwork) {
  const ImageShape grey{1, 28, 28};
  for (const int64_t channels : {1, 3}) {
    const auto crop = dataset_of({CenterCrop{{20, 24}}}, channels);
    EXPECT_EQ(output_shape(make_small_image_pipeline(crop, grey, 0)),
              (ImageShape{channels, 24, 20}));
  }
}

TEST(SmallImagePipeline, FaultsAreOneLineWithTheirPlace) {
  const auto fault = [](const std::vector<PictureStep>& steps, int64_t channels) {
    const ImageShape stored{channels, 28, 28};
    const Error error =
        error_of([&] { make_small_image_pipeline(dataset_of(steps, channels), stored, 0); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(fault({RandomVerticalFlip{}, RandomCrop{37, 4}}, 3),
            "t.yaml:3: RandomCrop: size 37 does not fit into a picture of 28 x 28 with padding 4");
  EXPECT_EQ(fault({ResizePicture{20, {}}, RandomCrop{24, 0}}, 3),
            "t.yaml:3: RandomCrop: size 24 does not fit into a picture of 20 x 20 with padding 0");
  EXPECT_EQ(fault({Normalize{}, RandomVerticalFlip{}}, 3),
            "t.yaml:3: transform_pipeline: behind Normalize only RandomErasing may follow");
  const OwnTransform mine{"Mine", PlainTransform([](Picture&) {})};
  EXPECT_EQ(
      fault({mine, RandomVerticalFlip{}}, 1),
      "t.yaml:3: Mine: a transform of one's own needs a network's input of 3 channels, not 1");
  RandomErasing red;
  red.value = {1, 0, 0};
  EXPECT_EQ(fault({red}, 1),
            "t.yaml:3: RandomErasing: value has 3 numbers; the images have 1 channel");
  EXPECT_EQ(fault({RandomVerticalFlip{}, Normalize{}}, 1),
            "t.yaml:3: Normalize: mean has 3 and std 3 numbers; the images have 1 channels");
  const auto grown = dataset_of({mine, RandomCrop{37, 4}, RandomVerticalFlip{}}, 3);
  EXPECT_NO_THROW(make_small_image_pipeline(grown, {3, 28, 28}, 0)) << "it may change the size";
  EXPECT_EQ(fault({mine, CenterCrop{{20, 24}}, RandomCrop{24, 0}}, 3),
            "t.yaml:3: RandomCrop: size 24 does not fit into a picture of 20 x 24 with padding 0");
  EXPECT_EQ(fault({mine, ResizePicture{0, {40, 20}}, RandomVerticalFlip{}, RandomCrop{24, 1}}, 3),
            "t.yaml:3: RandomCrop: size 24 does not fit into a picture of 40 x 20 with padding 1");
}

TEST(SmallImagePipeline, OnlyPicturesWithoutStepsOnFloatsAreCountedAsBytes) {
  const auto bytes_of = [](const std::vector<PictureStep>& steps, c10::Device device,
                           bool mixes = false) {
    Config config;
    config.model.head.num_classes = 10;
    config.train.dataset = dataset_of(steps);
    config.train.dataset.usage = "train";
    config.train.dataset.data_dirs = {"/no/such/data"};
    if (mixes) config.train.dataset.mixing.mix_up = MixUp{};
    return check_class_data(config).sample_bytes(device);
  };
  constexpr int64_t kElements = 3 * 32 * 32;
  EXPECT_EQ(bytes_of({RandomVerticalFlip{}, Normalize{}}, at::kCUDA), kElements);
  EXPECT_EQ(bytes_of({RandomVerticalFlip{}, Normalize{}}, at::kCPU), 4 * kElements);
  EXPECT_EQ(bytes_of({RandomVerticalFlip{}, Normalize{}}, at::kCUDA, true), 4 * kElements);
  EXPECT_EQ(bytes_of({Normalize{}, RandomErasing{}}, at::kCUDA), 4 * kElements);
  EXPECT_EQ(bytes_of({RandomHorizontalFlip{}, Normalize{}}, at::kCUDA), 4 * kElements);
}

// Each list is of one of the two kinds of pipelines.
TEST(SmallImagePipeline, BothKindsRefuseTheSame) {
  const auto fault = [](std::vector<PictureStep> steps, bool as_pictures, int64_t channels = 0) {
    if (as_pictures) steps.push_back(RandomVerticalFlip{});
    const auto dataset = dataset_of(steps, channels);
    const ImageShape stored{3, 24, 28};
    return std::string(error_of([&] { make_small_image_pipeline(dataset, stored, 0); }).what());
  };
  for (const bool as_pictures : {false, true}) {
    EXPECT_EQ(
        fault({RandomCrop{33, 4}}, as_pictures),
        "t.yaml:3: RandomCrop: size 33 does not fit into a picture of 28 x 24 with padding 4");
    EXPECT_EQ(fault({ResizePicture{0, {16385, 16384}}}, as_pictures),
              "t.yaml:3: Resize: a picture of 28 x 24 would have 16385 x 16384 pixels");
    EXPECT_EQ(fault({ResizePicture{24000, {}}}, as_pictures),
              "t.yaml:3: Resize: a picture of 28 x 24 would have 28000 x 24000 pixels");
    EXPECT_EQ(fault({RandomHorizontalFlip{}}, as_pictures, 1),
              "t.yaml:3: images of 3 channels cannot become 1");
  }
}

/// What a rank of these virtual ranks has of 59 samples.
DataParts data_of_59(const VirtualRankRange& ranks) {
  DataParts data;
  data.samples = 59;
  for (int i = ranks.first; i < ranks.first + ranks.count; ++i) {
    data.samplers.emplace_back(data.samples, i, ranks.total);
  }
  return data;
}

TEST(LoaderLine, HasAllSamplesWithoutPadding) {
  const std::string start = "Creating dataloader (training=";
  EXPECT_EQ(loader_line(data_of_59({0, 2, 2}), true, 0),
            start + "True) for device 0. Number of data samples: 60 per device (59 total).");
  EXPECT_EQ(loader_line(data_of_59({1, 1, 2}), true, 1),
            start + "True) for device 1. Number of data samples: 30 per device (59 total).");
  EXPECT_EQ(loader_line(data_of_59({0, 2, 2}), false, 0),
            start + "False) for device 0. Number of data samples: 59 per device (59 total).");
  EXPECT_EQ(loader_line(data_of_59({1, 1, 2}), false, 1),
            start + "False) for device 1. Number of data samples: 29 per device (59 total).");
}

}  // namespace
}  // namespace lockstep
