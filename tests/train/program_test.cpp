// The real programs: lockstep run, lockstep train, lockstep data.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "lockstep/base/deadline.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/observe/metrics.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string lockstep_program() {
  return std::string(std::getenv("LOCKSTEP_BIN_DIR")) + "/lockstep";
}

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
  std::string marked{};  ///< `out` with the launcher's [RANK] before each line.
};

constexpr auto kConfig = R"(system:
  log_interval: 1
  val_while_train: True
model:
  type: cls
  backbone: {name: resnet18, stem: imagenet}
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

int text_count(const std::string& text, const std::string& part) {
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
    fs::create_directory_symlink(*shared_ / "data", folder_ / "data");
  }

  /// `command` by the shell, in this test's folder.
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
        "env PATH=" + fs::path(lockstep_program()).parent_path().string() + ":$PATH ";
    auto outcome = run(path + lockstep_program() + launcher + " train -c c.yaml " + args);
    outcome.marked = outcome.out;
    // What the launcher puts in front of a rank's lines.
    outcome.out = std::regex_replace(outcome.out, std::regex("(^|\\n)\\[[0-9]+\\][: ]*"), "$1");
    return outcome;
  }

  /// One rank of torchrun's, that was started again so often.
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
  static TempFolder* shared_;
};
TempFolder* Program::shared_ = nullptr;

class ProgramOf : public Program, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProgramOf, ::testing::Values(1, 2));

TEST_P(ProgramOf, InterruptedRunGivesTheBitsOfTheWholeOne) {
  const bool remembers = GetParam() == 2;  // a hook that does
  const std::string few =
      std::string("-o train.loader.batch_size=4 system.val_while_train=False ") +
      (remembers ? "parallel.comm_hook=int8 " : "");
  const auto whole = train(few + "train.ckpt_save_dir=whole train.max_steps=6", GetParam());
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(train(few + "train.ckpt_save_dir=parts train.max_steps=3", GetParam()).status, 0);
  const auto rest =
      train(few + "train.ckpt_save_dir=parts train.max_steps=6 model.resume=True", GetParam());
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.out.find("Resume train from epoch: 1, step: 4"), std::string::npos) << rest.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("whole/step_000006/") + file) ==
                bytes(std::string("parts/step_000006/") + file))
        << file;
  }
  for (const auto* file : {"averaging_0.safetensors", "averaging_1.safetensors"}) {
    const auto path = std::string("/step_000006/") + file;
    EXPECT_EQ(fs::exists(folder_ / ("parts" + path)), remembers);
    if (!remembers) continue;
    EXPECT_TRUE(bytes("whole" + path) == bytes("parts" + path)) << file;
  }
  const auto records = read_metrics(folder_ / "parts/metrics.jsonl");
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[5].value("loss"),
            read_metrics(folder_ / "whole/metrics.jsonl")[5].value("loss"));
}

// 20 test records over 2 ranks and batches of 16: nothing counts twice.
/// Step and loss of each training step, as text.
std::vector<std::string> losses_of(const fs::path& folder) {
  std::vector<std::string> losses;
  for (const MetricsRecord& record : read_metrics(folder / "metrics.jsonl")) {
    losses.push_back(fmt::format("{} {:a}", record.step, record.values.at(0).second));
  }
  return losses;
}

TEST_F(Program, AKilledWorkerGivesTheBitsAndLossesOfAnUndisturbedRun) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.max_steps=20 "
      "train.ckpt_save_steps=2 system.ckpt_max_keep=1 ";
  const auto whole = train(few + "train.ckpt_save_dir=whole", 2);
  ASSERT_EQ(whole.status, 0) << whole.err;
  // Rank 1, from inside its first attempt, is killed once a checkpoint is there.
  const std::string killer =
      "if [ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
      "  (while [ ! -e parts/latest ]; do sleep 0.01; done; kill -KILL $$) & fi; exec \"$@\"";
  write_file_atomically(folder_ / "worker.sh", std::string_view(killer));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto killed = run("env PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 "
                          "--max_restarts 1 -- sh worker.sh lockstep train -c c.yaml " +
                          few + "train.ckpt_save_dir=parts");
  ASSERT_EQ(killed.status, 0) << killed.err;
  EXPECT_NE(killed.err.find("failed: SIGKILL"), std::string::npos) << killed.err;
  EXPECT_NE(killed.out.find("Resume train from epoch: 1, step: "), std::string::npos) << killed.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("whole/step_000020/") + file) ==
                bytes(std::string("parts/step_000020/") + file))
        << file;
  }
  EXPECT_EQ(losses_of(folder_ / "parts"), losses_of(folder_ / "whole"));
  EXPECT_EQ(losses_of(folder_ / "parts").size(), 20U);
  std::map<std::string, std::vector<MetricsRecord>> events;
  for (const MetricsRecord& event : read_metrics(folder_ / "parts/events.jsonl")) {
    events[event.kind].push_back(event);
    EXPECT_TRUE(seconds_of(event.text("time").value_or(""))) << event.kind;
  }
  EXPECT_EQ(events["start"].size(), 1U);
  ASSERT_EQ(events["restart"].size(), 1U);
  EXPECT_GE(events["restart"][0].value("steps_lost"), 0);
  EXPECT_GT(events["restart"][0].value("seconds_idle"), 0);
  EXPECT_GE(events["checkpoint"].size(), 7U);
  ASSERT_EQ(events["end"].size(), 1U);
  EXPECT_EQ(events["end"][0].text("reason"), "max_steps");
  EXPECT_NE(killed.out.find("Started again (start 2)"), std::string::npos) << killed.out;
}

TEST_F(Program, AJobThatFailsBeforeItsFirstCheckpointBeginsAnewInItsFolder) {
  // Rank 0 is killed once its first attempt has made steps.
  write_file_atomically(
      folder_ / "worker.sh",
      std::string_view("if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
                       "  (while [ ! -s out/metrics.jsonl ]; do sleep 0.01; done; kill -KILL $$) &"
                       " fi; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto killed = run("env PATH=" + path +
                          ":$PATH lockstep run --max_restarts 1 -- sh worker.sh lockstep train -c "
                          "c.yaml -o train.loader.batch_size=2 system.val_while_train=False "
                          "train.max_steps=40");
  ASSERT_EQ(killed.status, 0) << killed.err;
  EXPECT_FALSE(fs::exists(folder_ / "out.1")) << "its results are no earlier run's";
  EXPECT_EQ(losses_of(folder_ / "out").size(), 40U);
  std::map<std::string, std::vector<MetricsRecord>> events;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    events[event.kind].push_back(event);
  }
  EXPECT_EQ(events["start"].size(), 1U);
  ASSERT_EQ(events["restart"].size(), 1U);
  EXPECT_GE(events["restart"][0].value("steps_lost"), 1);
  EXPECT_GT(events["restart"][0].value("seconds_idle"), 0);
}

TEST_F(Program, OnlyResultsOfTheSameJobAreGoneOnFromAfterARestart) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.max_steps=1 ";
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  // A job of the same name, of another day.
  const auto first = run("env PATH=" + path +
                         ":$PATH lockstep run --rdzv_id night --max_restarts 1 -- "
                         "lockstep train -c c.yaml " +
                         few + "train.ckpt_save_dir=out");
  ASSERT_EQ(first.status, 0) << first.err;
  // The first attempt fails before it has a folder of its own.
  write_file_atomically(
      folder_ / "worker.sh",
      std::string_view("[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 1; exec \"$@\""));
  const auto again = run("env PATH=" + path +
                         ":$PATH lockstep run --rdzv_id night --max_restarts 1 -- "
                         "sh worker.sh lockstep train -c c.yaml " +
                         few + "train.ckpt_save_dir=out");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out.find("Resume train"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("Results of an earlier run are now in"), std::string::npos) << again.out;
}

// torchrun tells jobs apart by --rdzv_id alone, and tells of restarts, but of no generations.
TEST_F(Program, UnderTorchrunAFailureBeforeTheFirstCheckpointGoesOnFromNoEarlierRun) {
  ASSERT_EQ(torchrun(0, "").status, 0);
  const auto steps = [&] { return losses_of(folder_ / "out").size(); };
  ASSERT_EQ(torchrun(1, "train.max_steps=4").status, 0);
  EXPECT_EQ(steps(), 4U) << "a restart of the same job goes on";
  ASSERT_NE(torchrun(0, "model.pretrained=False model.resume=nowhere").status, 0);
  const auto again = torchrun(1, "");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out.find("Resume train"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("Results of an earlier run are now in out.1"), std::string::npos)
      << again.out;
  EXPECT_EQ(steps(), 2U);
}

// A host that has its weights would else wait for one that downloads them no longer than for ranks
// to meet.
TEST_F(Program, RanksMeetBeforeTheyDownload) {
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto result = run("env XDG_CACHE_HOME=cache PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 -- lockstep train -c c.yaml -o "
                          "model.pretrained=http://127.0.0.1:1/x.ckpt");
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_TRUE(std::regex_search(result.err, std::regex("rank [01]: downloading http")))
      << "who says so knows its rank: " << result.err;
}

/// What rank 1 is told besides, or has otherwise, on a host of its own.
TEST_F(Program, RanksOfDifferentConfigurationsAreRefused) {
  write_file_atomically(folder_ / "worker.sh",
                        std::string_view("[ $RANK = 0 ] || set -- \"$@\" $OTHER; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto two = [&](const std::string& other, const std::string& verb) {
    return run("env OTHER=\"" + other + "\" PATH=" + path +
               ":$PATH lockstep run --nproc_per_node 2 -- sh worker.sh lockstep train -c c.yaml " +
               verb + " -o train.max_steps=1 system.val_while_train=False");
  };
  for (const auto& [other, text] : std::vector<std::pair<std::string, std::string>>{
           {"scheduler.lr=0.7", "scheduler.lr is 0.7 on rank 1, 0.02 on rank 0"},
           {"train.max_steps=2", "train.max_steps is 2 on rank 1, 1 on rank 0"},
           {"train.ckpt_save_dir=out2", "train.ckpt_save_dir is out2 on rank 1, out on rank 0"}}) {
    const auto result = two(other, "");
    EXPECT_EQ(result.status, 2) << other << result.out << result.err;
    EXPECT_NE(result.err.find("lockstep train: error: the ranks differ: " + text),
              std::string::npos)
        << other << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "out")) << other;
  }
  EXPECT_EQ(two("system.seed=3", "--check").status, 2);
  const auto same = two("scheduler.lr=2e-2 train.ckpt_save_dir=./out/ system.log_interval=7", "");
  EXPECT_EQ(same.status, 0) << same.err;
}

TEST_F(Program, ALatestCheckpointThatIsGoneIsSaid) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.ckpt_save_steps=1 ";
  ASSERT_EQ(train(few + "train.max_steps=2").status, 0);
  fs::remove_all(folder_ / "out/step_000002");
  const std::string warning =
      "out/latest points to step_000002, which is no whole checkpoint any more: step_000001 is "
      "taken";
  const auto check = train("--check " + few + "model.resume=True");
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.err.find(warning), std::string::npos) << check.err;
  const auto result = train(few + "train.max_steps=3 model.resume=True");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("WARNING - " + warning), std::string::npos) << result.out;
  const auto again = train(few + "train.max_steps=3 model.resume=True");
  EXPECT_EQ(again.out.find("which is no whole"), std::string::npos) << again.out;
}

// What a rank computes that rounds another way differs in its last bits.
TEST_F(Program, WeightsThatDifferFromRankToRankAreAnError) {
  write_file_atomically(folder_ / "worker.sh",
                        std::string_view("[ $RANK = 0 ] || export LD_PRELOAD=$LOCKSTEP_BIN_DIR/"
                                         "lockstep_rounds_up.so; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto result = run("env PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 -- sh worker.sh lockstep train "
                          "-c c.yaml -o train.max_steps=2 system.val_while_train=False");
  EXPECT_EQ(result.status, 1) << result.out << result.err;
  const std::regex line(
      "lockstep train: error: Weights: [0-9a-f]{16} on rank 0, others on rank 1: ranks that train");
  EXPECT_TRUE(std::regex_search(result.err, line)) << result.err;
  EXPECT_NE(result.out.find("Checkpoint: out/latest"), std::string::npos) << result.out;
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
  for (const auto* log : {"out/log_0.txt", "out/log_1.txt"}) {
    EXPECT_NE(bytes(log).find("ERROR - Weights: "), std::string::npos) << log << bytes(log);
  }
}

TEST_F(Program, AMissingFileOfTheDataIsNamed) {
  fs::copy(*shared_ / "data", folder_ / "less");
  fs::remove(folder_ / "less/data_batch_3.bin");
  const std::string less = "-o train.dataset.data_dir=less train.max_steps=1";
  const std::string warning = "less lacks data_batch_3.bin: only the other 4 of 5 files are used";
  const auto check = train("--check " + less);
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.err.find(warning), std::string::npos) << check.err;
  const auto trained = train(less);
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(trained.out.find("WARNING - " + warning), std::string::npos) << trained.out;
  const auto data = run(lockstep_program() + " data cifar10 --dir less");
  EXPECT_EQ(data.status, 0) << data.err;
  EXPECT_NE(data.err.find("less lacks data_batch_3.bin: "), std::string::npos) << data.err;
}

TEST_F(Program, ACopyOfTheDataThatLacksAFileIsFoundByTheNumberOfSamples) {
  fs::copy(*shared_ / "data", folder_ / "less");
  fs::remove(folder_ / "less/data_batch_3.bin");
  write_file_atomically(folder_ / "worker.sh",
                        std::string_view("[ $RANK = 0 ] || set -- \"$@\" "
                                         "train.dataset.data_dir=less; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto result = run("env PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 -- sh worker.sh lockstep train "
                          "-c c.yaml -o train.max_steps=1 system.val_while_train=False");
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_NE(result.err.find("lockstep train: error: the ranks differ: rank 1 has 80 training "
                            "samples, rank 0 has 100; is the copy of the data of rank 1 complete?"),
            std::string::npos)
      << result.err;
}

TEST_F(Program, AGenerationThatWasGivenUpMovesNoResults) {
  ASSERT_EQ(torchrun(2, "").status, 0);
  write_file_atomically(folder_ / "out/.job", std::string_view("another"));
  const auto late = torchrun(1, "");
  EXPECT_EQ(late.status, 1) << late.err;
  EXPECT_NE(late.err.find("generation 3 of this job writes into out"), std::string::npos)
      << late.err;
  EXPECT_FALSE(fs::exists(folder_ / "out.1"));
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
}

TEST_P(ProgramOf, TrainsEvaluatesAndSaysWhereThingsAre) {
  const bool averages = GetParam() == 2;
  const std::string ema = averages ? " train.ema=True" : " train.ema=False";
  const auto result = train("-o scheduler.num_epochs=1" + ema, GetParam());
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text :
       {"\nTotal number of trainable parameters: 11181642\n", "epoch: [1/1] step: [1/",
        "epoch: [1/1], loss: ", "Performance: {'acc': ", "=> Best acc: ", "Training completed!",
        "Top K checkpoints:\nacc\tcheckpoint\n", "\nCheckpoint: out/latest (best: out/best)\n",
        "\nLog: out/log_0.txt, metrics: out/metrics.jsonl, curves: out/result.svg\n", "\nNext: "}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
  for (const auto* file : {"args.yaml", "train_config.yaml", "log_0.txt", "metrics.jsonl",
                           "result.log", "result.svg", "latest/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  }
  EXPECT_EQ(bytes("out/train_config.yaml"), kConfig);
  EXPECT_EQ(bytes("out/result.log").find("Epoch\tloss\tacc\ttop_5\ttrain_time\teval_time\n1\t"),
            0u);
  const auto last = read_metrics(folder_ / "out/metrics.jsonl").back();
  EXPECT_EQ(last.kind, "eval");
  EXPECT_EQ(last.value("samples"), 20);
  EXPECT_TRUE(last.text("time") && last.text("run") && last.text("host"));
  EXPECT_EQ(last.value("rank"), 0);
  EXPECT_LT(result.out.find("Results: out ("), result.out.find("epoch: [1/1] step: [1/"));
  std::set<std::string> kinds;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    kinds.insert(event.kind);
    EXPECT_EQ(event.epoch, 1) << event.kind;  // there is no other
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"start", "checkpoint", "evaluation", "end"}));
  // The same weights judged alone, by the other number of ranks.
  const auto again = train("--eval -o" + ema, 3 - GetParam());
  ASSERT_EQ(again.status, 0) << again.err;
  const auto line = result.out.substr(result.out.find("Performance: {"));
  const auto figures = line.substr(0, line.find('}') + 1);
  EXPECT_NE(again.out.find(figures), std::string::npos) << figures << " in\n" << again.out;
  EXPECT_NE(again.out.find(averages ? "Weights: out/best/ema.safetensors\n"
                                    : "Weights: out/best/model.safetensors\n"),
            std::string::npos)
      << again.out;
}

/// Programs that run until a signal ends them.
class EndlessProgram : public Program {
 protected:
  /// Becomes `lockstep ARGS`, in this test's folder. In a process that was forked for it.
  [[noreturn]] void become(std::vector<std::string> args) const {
    args.insert(args.begin(), lockstep_program());
    args.insert(args.end(), {"train", "-c", "c.yaml", "-o", "scheduler.num_epochs=10000",
                             "system.val_while_train=False"});
    std::vector<char*> words;
    for (auto& arg : args) words.push_back(arg.data());
    words.push_back(nullptr);
    if (chdir(folder_.path().c_str()) != 0) _exit(99);
    execv(words[0], words.data());
    _exit(127);
  }
  /// `on_hangup`: SIG_DFL or SIG_IGN, whatever this test was started with.
  /// `host`: that it takes itself to be on; empty: this one.
  pid_t start(const std::vector<std::string>& args, sighandler_t on_hangup,
              const std::string& host = "") const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    ::signal(SIGHUP, on_hangup);
    if (!host.empty()) ::setenv("LOCKSTEP_HOST_ID", host.c_str(), 1);
    if (std::freopen((folder_ / "stdout.txt").c_str(), "w", stdout) == nullptr) _exit(98);
    if (std::freopen((folder_ / "stderr.txt").c_str(), "w", stderr) == nullptr) _exit(97);
    become(args);
  }
  /// Until its metrics have grown beyond `bytes`. Returns their size.
  size_t wait_for_steps(size_t bytes = 0) const {
    const auto deadline = Deadline::after(60s);
    while (!deadline.passed() && (!fs::exists(metrics()) || fs::file_size(metrics()) <= bytes)) {
      std::this_thread::sleep_for(20ms);
    }
    return fs::file_size(metrics());
  }
  /// The step that a line of rank 0's log has, once one has a later one than `after`; else 0.
  int64_t step_said(const std::string& pattern, int64_t after) const {
    const auto deadline = Deadline::after(60s);
    for (; !deadline.passed(); std::this_thread::sleep_for(20ms)) {
      const auto log = fs::exists(log_file()) ? read_file(log_file()) : "";
      const std::regex line(pattern);
      for (std::sregex_iterator at(log.begin(), log.end(), line), end; at != end; ++at) {
        if (const int64_t step = std::stoll((*at)[1]); step > after) return step;
      }
    }
    return 0;
  }
  static int exit_code_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  fs::path metrics() const { return folder_ / "out/metrics.jsonl"; }
  fs::path log_file() const { return folder_ / "out/log_0.txt"; }
  void expect_last_step_is_saved() const {
    EXPECT_EQ(fs::read_symlink(folder_ / "out/latest").string(),
              fmt::format("step_{:06}", read_metrics(metrics()).back().step));
  }
};

class ProgramEndedBy : public EndlessProgram,
                       public ::testing::WithParamInterface<std::pair<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Signals, ProgramEndedBy,
                         ::testing::Values(std::pair{SIGTERM, 143}, std::pair{SIGINT, 130},
                                           std::pair{SIGHUP, 129}));

TEST_P(ProgramEndedBy, FinishesTheStepAndSaves) {
  const auto [signal, exit_code] = GetParam();
  const pid_t pid = start({"run", "--nproc_per_node", "2", "--", lockstep_program()}, SIG_DFL);
  wait_for_steps();
  kill(pid, signal);
  EXPECT_EQ(exit_code_of(pid), exit_code) << bytes("stderr.txt");
  expect_last_step_is_saved();
  const auto step = read_metrics(metrics()).back().step;
  EXPECT_NE(bytes("out/log_1.txt").find("lockstep.train"), std::string::npos);
  const auto more = train("-o model.resume=True system.val_while_train=False train.max_steps=" +
                              std::to_string(step + 1) + " scheduler.num_epochs=10000",
                          2);
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_EQ(read_metrics(metrics()).back().step, step + 1);
}

// As batch systems send it a while before they end a job.
TEST_F(EndlessProgram, SavesAndGoesOnAfterSigusr1) {
  const pid_t pid = start({"run", "--nproc_per_node", "2", "--", lockstep_program()}, SIG_DFL);
  wait_for_steps();
  int64_t last = 0;
  for (int round = 0; round < 2; ++round) {
    kill(pid, SIGUSR1);
    const auto saved = step_said("SIGUSR1: checkpoint saved after step ([0-9]+)\n", last);
    ASSERT_GT(saved, last) << bytes("out/log_0.txt") << bytes("stderr.txt");
    bool is_told = false;
    for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
      is_told = is_told || (event.kind == "checkpoint" && event.step == saved);
    }
    EXPECT_TRUE(is_told) << saved;
    last = saved;
  }
  wait_for_steps(fs::file_size(metrics()));
  kill(pid, SIGTERM);
  EXPECT_EQ(exit_code_of(pid), 143) << bytes("stderr.txt");
  expect_last_step_is_saved();
}

// The first agent serves the place at which both meet; the second comes later.
TEST_F(EndlessProgram, AChangeOfMembershipIsNoEnd) {
  const testing::HeldPort port;
  const auto agent = [&](const char* host) {
    return start({"run", "--nnodes", "1:2", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                  "127.0.0.1:" + std::to_string(port.number()), "--rdzv_conf",
                  "last_call_timeout=0,keep_alive_max_attempt=50", "--", lockstep_program()},
                 SIG_DFL, host);
  };
  const pid_t first = agent("a");
  wait_for_steps();
  const pid_t second = agent("b");
  EXPECT_GT(step_said("Resume train from epoch: [0-9]+, step: ([0-9]+)", 0), 0)
      << bytes("out/log_0.txt") << bytes("stderr.txt");
  const auto log = bytes("out/log_0.txt");
  EXPECT_EQ(log.find("Next: "), std::string::npos) << log;
  EXPECT_EQ(log.find("SIGTERM"), std::string::npos) << log;
  EXPECT_TRUE(std::regex_search(
      log, std::regex("Stopped after step [0-9]+, checkpoint saved: nodes of this job come or go. "
                      "The job goes on with other nodes\n")))
      << log;
  std::vector<std::string> ends;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    if (event.kind == "end") ends.push_back(event.text("reason").value_or(""));
  }
  EXPECT_EQ(ends, std::vector<std::string>{"membership"});
  for (const pid_t pid : {second, first}) kill(pid, SIGTERM);
  for (const pid_t pid : {second, first}) EXPECT_EQ(exit_code_of(pid), 143);
}

class ProgramOnATerminal : public EndlessProgram, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProgramOnATerminal, ::testing::Values(1, 2));

TEST_P(ProgramOnATerminal, SavesWhenThatIsClosed) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    ::signal(SIGHUP, SIG_DFL);
    if (GetParam() == 1) become({});
    become({"run", "--nproc_per_node", "2", "--", lockstep_program()});
  }
  std::thread reader([&] {  // a terminal that nobody reads is full at some time
    char bytes[4096];
    while (read(terminal, bytes, sizeof bytes) > 0 && !fs::exists(metrics())) continue;
  });
  wait_for_steps();
  reader.join();
  close(terminal);
  EXPECT_EQ(exit_code_of(pid), 129) << bytes("out/log_0.txt");
  expect_last_step_is_saved();
  EXPECT_NE(bytes("out/log_0.txt").find("SIGHUP: stopped after step"), std::string::npos);
}

TEST_F(EndlessProgram, GoesOnUnderNohupWhenTheTerminalIsClosed) {
  const pid_t pid = start({}, SIG_IGN);
  const auto bytes_then = wait_for_steps();
  kill(pid, SIGHUP);
  const auto bytes_later = wait_for_steps(bytes_then);  // of the step that was under way
  wait_for_steps(bytes_later);
  kill(pid, SIGTERM);
  EXPECT_EQ(exit_code_of(pid), 143) << bytes("stderr.txt");
  expect_last_step_is_saved();
}

// Lines of steps count those of an epoch for the ranks that are there; all else counts the run's.
TEST_F(Program, WhoGoesOnWithinAnEpochSaysHowItsStepsAreCounted) {
  const std::string few = "-o system.val_while_train=False train.loader.batch_size=4 ";
  ASSERT_EQ(train(few + "train.max_steps=6").status, 0);
  const auto same = train(few + "model.resume=True train.max_steps=8");
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_TRUE(std::regex_search(
      same.out, std::regex("Resume train from epoch: 1, step: 7 of the run \\(as metrics.jsonl and "
                           "checkpoints count\\), after \\[6/[0-9]+\\] of the epoch\n")))
      << same.out;
  EXPECT_EQ(same.out.find("is dealt to"), std::string::npos) << same.out;
  const auto more = train(few + "model.resume=True train.max_steps=9", 2);
  ASSERT_EQ(more.status, 0) << more.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      more.out, found,
      std::regex("32 of [0-9]+ samples of epoch 1 were used by 1 rank; the rest is dealt to 2 in "
                 "([0-9]+) steps, and an epoch's steps are counted for 2 ranks from here: "
                 "\\[([0-9]+)/([0-9]+)\\] are done\n")))
      << more.out;
  EXPECT_EQ(std::stoi(found[1]) + std::stoi(found[2]), std::stoi(found[3]));
  const auto next = fmt::format(" step: [{}/{}], ", std::stoi(found[2]) + 1, found[3].str());
  EXPECT_NE(more.out.find(next), std::string::npos) << next << " in\n" << more.out;
  EXPECT_TRUE(
      std::regex_search(more.out, std::regex("step: 9 of the run .*, after \\[" + found[2].str() +
                                             "/" + found[3].str() + "\\] of the epoch\n")))
      << more.out;
}

TEST_F(Program, TheSameCommandGivesTheSameBitsAndKeepsEarlierResults) {
  const std::string args =
      "-o train.max_steps=3 system.val_while_train=False system.log_style=mindspore";
  ASSERT_EQ(train(args, 2).status, 0);
  const auto second = train(args, 2);
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.out.find("Results of an earlier run are now in out.1"), std::string::npos);
  EXPECT_NE(second.out.find("\nepoch: 1 step: 1, loss is "), std::string::npos) << second.out;
  for (const int step : {1, 2, 3}) {
    for (const int rank : {0, 1}) {
      const auto line = fmt::format("[{}] epoch: 1 step: {}, loss is ", rank, step);
      EXPECT_EQ(text_count(second.marked, line), 1) << line << "in\n" << second.marked;
    }
  }
  EXPECT_NE(second.out.find("\nSteps: 3 in "), std::string::npos) << second.out;
  EXPECT_NE(second.out.find(" on all 2 ranks\n"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find(" WARNING - data is a generated stand-in"), std::string::npos)
      << second.out;
  const std::string weights = "/step_000003/model.safetensors";
  EXPECT_TRUE(bytes("out.1" + weights) == bytes("out" + weights));
  EXPECT_NE(second.out.find("\nNext: the same command with --eval to judge the weights, or with -o "
                            "model.resume=True train.max_steps=0 to go on to the end of epoch 3\n"),
            std::string::npos)
      << second.out;
  // Going on from the first run is no reason to mix its results with the second's.
  const auto third = train(
      "-o model.resume=out.1 train.max_steps=4 system.val_while_train=False "
      "train.ckpt_save_dir=out/",
      2);
  ASSERT_EQ(third.status, 0) << third.err;
  EXPECT_NE(third.out.find("Results of an earlier run are now in out.2"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "out.2/step_000003/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "out/step_000003"));
  EXPECT_TRUE(fs::exists(folder_ / "out/step_000004"));
}

TEST_F(Program, AFinishedRunSaysThatNothingIsLeft) {
  const std::string few = "-o train.loader.batch_size=4 system.val_while_train=False ";
  ASSERT_EQ(train(few + "train.max_steps=2").status, 0);
  const std::string weights = bytes("out/latest/model.safetensors");
  const auto steps = train(few + "train.max_steps=2 model.resume=True", 2);
  EXPECT_EQ(steps.status, 0) << steps.err;
  const std::string nothing = "There is nothing left to train: the checkpoint has ";
  EXPECT_EQ(text_count(steps.out, nothing + "2 steps of 2 (train.max_steps)"), 1) << steps.out;
  for (const auto* part : {"Results: out", "Checkpoint: out/latest"}) {
    EXPECT_NE(steps.out.find(part), std::string::npos) << steps.out;
  }
  for (const auto* part : {"Start training", "Resume train"}) {
    EXPECT_EQ(steps.out.find(part), std::string::npos) << steps.out;
  }
  EXPECT_TRUE(bytes("out/latest/model.safetensors") == weights);
  ASSERT_EQ(train(few + "scheduler.num_epochs=1 model.resume=True").status, 0);
  const auto epochs = train(few + "scheduler.num_epochs=1 model.resume=True");
  EXPECT_EQ(epochs.status, 0) << epochs.err;
  EXPECT_EQ(text_count(epochs.out, nothing + "1 epoch of 1 (scheduler.num_epochs)"), 1)
      << epochs.out;
}

TEST_F(Program, CheckPrintsThePlanAndTouchesNothing) {
  const auto result = train(
      "--check -o train.max_steps=7 train.dataset.data_dir=nowhere "
      "train.dataset.sample_ratio=0.5 parallel.shards=4",
      2);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text : {"max_steps: 7\n", "Model: resnet18-None-ClsHead\n", "Ranks: 2\n",
                           "Samples: 25000 (12500 a rank), the official number",
                           "Batch: 8 x 4 shards x 1 accumulated = 32\n", "Steps: 781 an epoch",
                           "the data are not there yet", "7 optimizer steps in all"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// 2 samples x (4 + 1) batches x (3 + 4) planes x 128 x 128 x 4 bytes: with its four maps.
TEST_F(Program, CheckCountsTheMapsOfADetectorsBatches) {
  const auto result =
      run(lockstep_program() + " train -c " + std::getenv("LOCKSTEP_SOURCE_DIR") +
          "/configs/det/dbnet/db_r18_synth.yaml --check -o train.loader.batch_size=2 "
          "train.loader.num_workers=1 train.loader.prefetch_size=4 "
          "\"train.dataset.transform_pipeline=[{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, "
          "{RandomCropWithBBox: {crop_size: [128, 128]}}, {ValidatePolygons: }, {ShrinkBinaryMap: "
          "}, {BorderMap: }, {NormalizeImage: }, {ToCHWImage: }]\"");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find(" + batches 4.4 MiB;"), std::string::npos) << result.out;
}

// The numbers that MindSpore's tutorial prints.
TEST_F(Program, TheTutorialsRecipeHasItsSteps) {
  const std::string recipe = std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) +
                             "/configs/cls/resnet/resnet50_cifar10_tutorial.yaml";
  const auto result =
      run("env DATA_PATH=nowhere " + lockstep_program() + " run --nproc_per_node 8 -- " +
          lockstep_program() + " train --check --config " + recipe);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text :
       {"Samples: 60000 (7500 a rank), the official number", "Batch: 32 x 8 ranks x 1 accumulated",
        "Steps: 234 an epoch, 10 epochs, 2340 optimizer steps in all", " opt: momentum\n",
        " momentum: 0.9\n", " scheduler: constant\n", " lr: 0.01\n", " usage: all\n"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
}

/// How many processes loaded libtorch while two ranks ran. The loader writes a file for
/// each process that is started, none for one that is forked.
int loads_of_two_ranks(const fs::path& folder, const std::function<Outcome(std::string)>& run,
                       const std::string& variables) {
  fs::create_directory(folder);
  const auto done =
      run("env LD_DEBUG=files LD_DEBUG_OUTPUT=" + (folder / "loader").string() +
          " OMP_NUM_THREADS=2 " + variables + " " + lockstep_program() +
          " run --nproc_per_node 2 -- " + lockstep_program() + " train -c c.yaml --check");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err.find("before warm_start()"), std::string::npos) << done.err;
  return static_cast<int>(
      std::count_if(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& file) {
        return read_file(file.path()).find("libtorch_cpu") != std::string::npos;
      }));
}

TEST_F(Program, RanksOfSeveralThreadsStartWarm) {
  const auto start = [this](const std::string& command) { return run(command); };
  EXPECT_EQ(loads_of_two_ranks(folder_ / "warm", start, ""), 1);
  EXPECT_EQ(loads_of_two_ranks(folder_ / "cold", start, "LOCKSTEP_WARM_START=0"), 2);
}

// 3 of 25 steps of an epoch of 100 samples, then on with other ranks, batches and accumulation.
TEST_F(Program, GoesOnWithinAnEpochWithOtherBatches) {
  const std::string args = "-o train.loader.batch_size=4 system.val_while_train=False ";
  ASSERT_EQ(train(args + "train.max_steps=3").status, 0);
  int64_t step = 3;
  for (const auto& [other, ranks, text] :
       {std::tuple<std::string, int, std::string>{"train.loader.batch_size=2", 2, "12 of 100"},
        {"train.loader.batch_size=3", 1, "16 of 100"},
        {"parallel.shards=4", 1, "19 of 100"},
        {"train.gradient_accumulation_steps=2", 2, ""}}) {
    ++step;
    const auto result = train(
        args + "model.resume=True train.max_steps=" + std::to_string(step) + " " + other, ranks);
    EXPECT_EQ(result.status, 0) << other << "\n" << result.err;
    EXPECT_NE(result.out.find(text), std::string::npos) << result.out;
  }
  const auto check = train("--check " + args + "model.resume=True");
  EXPECT_EQ(check.status, 0) << check.err;
  const auto fewer = train("--check " + args + "model.resume=True train.dataset.sample_ratio=0.1");
  EXPECT_EQ(fewer.status, 2) << fewer.out;
  EXPECT_NE(fewer.err.find("and the data have 10"), std::string::npos) << fewer.err;
}

// Four pictures a shard and step, on one rank and on two.
TEST_F(Program, ShardsGiveTheSameBitsOnOtherRanks) {
  const std::string args =
      "-o parallel.shards=2 train.max_steps=3 train.loader.batch_size=4 train.ckpt_save_dir=";
  const auto one = train(args + "one");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find("Shards: 2, 2 on each rank, intra-op threads: 1."), std::string::npos);
  EXPECT_NE(one.out.find("\nNum shards: 2\nGlobal batch size: 4x2x1=8\n"), std::string::npos);
  EXPECT_EQ(one.out.find("Averaged steps"), std::string::npos) << one.out;
  const auto two = train(args + "two parallel.measure_wait=True", 2);
  ASSERT_EQ(two.status, 0) << two.err;
  const auto times = two.out.find("\nAveraged steps: 3, mean: forward ");
  ASSERT_NE(times, std::string::npos) << two.out;
  EXPECT_NE(two.out.find(" ms, waiting for slower ranks ", times), std::string::npos) << two.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("one/step_000003/") + file) ==
                bytes(std::string("two/step_000003/") + file))
        << file;
  }
  const auto records = read_metrics(folder_ / "one/metrics.jsonl");
  const auto others = read_metrics(folder_ / "two/metrics.jsonl");
  ASSERT_EQ(records.size(), 4u);  // the last is an evaluation
  ASSERT_EQ(others.size(), 4u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].value("loss"), others[i].value("loss")) << i;
    for (const char* time : {"forward_ms", "backward_ms", "comm_hidden_ms", "slowest_wait_ms"}) {
      EXPECT_EQ(others[i].value(time).has_value(), others[i].kind == "train") << time;
      EXPECT_FALSE(records[i].value(time).has_value()) << time;
    }
  }
}

TEST_F(Program, FullDiskLeavesNoHalfCheckpoint) {
  const auto result = run("bash -c \"trap \\\"\\\" XFSZ; ulimit -f 20000; exec " +
                          lockstep_program() + " train -c c.yaml -o train.max_steps=1\"");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_NE(result.err.find("lockstep train: error: "), std::string::npos) << result.err;
  for (const auto& entry : fs::directory_iterator(folder_ / "out")) {
    EXPECT_EQ(entry.path().filename().string().find("step_"), std::string::npos) << entry.path();
  }
}

TEST_F(Program, LogsThatCannotBeWrittenCostWarnings) {
  fs::create_directories(folder_ / "out/log_0.txt");
  fs::create_directories(folder_ / "out/result.log/in the way");
  const auto with_full_stdout = [&](const std::string& args) {
    return run("bash -c \"exec " + lockstep_program() + " train -c c.yaml " + args +
               " > /dev/full\"");
  };
  const auto result = with_full_stdout("-o train.max_steps=1");
  EXPECT_EQ(result.status, 0) << result.err;
  for (const auto* lost : {"log_0.txt", "result.log", "standard output"}) {
    EXPECT_NE(result.err.find(lost), std::string::npos) << lost << " in\n" << result.err;
  }
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
  EXPECT_EQ(with_full_stdout("--eval").status, 1) << "its figures are all that it is for";
}

TEST_F(Program, CurvesThatCannotBeDrawnCostAWarning) {
  fs::create_directories(folder_ / "out/result.svg/in the way");
  const auto result = train("-o train.max_steps=1 system.val_while_train=False");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("no curves: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("result.svg"), std::string::npos) << result.out;
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
}

TEST_F(Program, ADivergedRunLeavesItsCurves) {
  const auto result = train(
      "-o scheduler.scheduler=constant scheduler.lr=1000000 system.val_while_train=False "
      "train.max_steps=50");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(fs::exists(folder_ / "out/result.svg"));
}

// What a power cut leaves, and another set of columns.
TEST_F(Program, LogsThatCannotBeGoneOnFromCostNoRun) {
  ASSERT_EQ(train("-o scheduler.num_epochs=1 system.val_while_train=False").status, 0);
  const std::string metrics = bytes("out/metrics.jsonl");
  const std::string zeros(30, '\0');
  write_file_atomically(folder_ / "out/metrics.jsonl", metrics + zeros + "\n");
  const auto on = train("-o scheduler.num_epochs=2 model.resume=True");
  EXPECT_EQ(on.status, 0) << on.err;
  EXPECT_NE(on.err.find("metrics.jsonl.1, and the run goes on"), std::string::npos) << on.err;
  EXPECT_NE(on.err.find("result.log.1, and the run goes on"), std::string::npos) << on.err;
  EXPECT_EQ(bytes("out/metrics.jsonl").find(metrics), 0U);
  EXPECT_EQ(bytes("out/metrics.jsonl.1"), metrics + zeros + "\n");
}

TEST_F(Program, ResultsMayGoWhereTheProgramStands) {
  const std::string args =
      "-o train.ckpt_save_dir=. train.max_steps=1 system.val_while_train=False";
  ASSERT_EQ(train(args).status, 0);
  const auto again = train(args);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("Results of an earlier run are now in ./earlier.1"), std::string::npos)
      << again.out;
  EXPECT_TRUE(fs::exists(folder_ / "earlier.1/step_000001"));
}

TEST_F(Program, WhatIsWrongInALaterGenerationIsNotTheUsersMistake) {
  const auto early = run("env TORCHELASTIC_RESTART_COUNT=0 " + lockstep_program() +
                         " train -c c.yaml -o train.dataset.data_dir=nowhere");
  EXPECT_EQ(early.status, 2) << early.err;
  const auto later = run("env TORCHELASTIC_RESTART_COUNT=1 " + lockstep_program() +
                         " train -c c.yaml -o train.dataset.data_dir=nowhere");
  EXPECT_EQ(later.status, 1) << later.err;
  EXPECT_NE(later.err.find("nowhere"), std::string::npos) << later.err;
}

struct BadInput {
  const char* args;
  int status;
  const char* message;
};

TEST_F(Program, BadInputIsOneClearLineAndWritesNothing) {
  write_file_atomically(folder_ / "broken.yaml", std::string_view("system:\n  seed: [1\n"));
  write_file_atomically(folder_ / "empty.yaml", std::string_view(""));
  fs::create_directory(folder_ / "cut");
  write_file_atomically(folder_ / "cut/data_batch_1.bin", std::string_view("x"));
  fs::create_directory(folder_ / "cut_test");
  write_file_atomically(folder_ / "cut_test/test_batch.bin", std::string_view("x"));
  write_file_atomically(folder_ / "file", std::string_view("x"));
  fs::create_directory(folder_ / "bad");
  write_file_atomically(folder_ / "bad/state.json", std::string_view("{"));
  const std::vector<BadInput> table = {
      {"train", 2, "--config is required"},
      {"train -c c.yaml --chek", 2, "--chek"},
      {"train -c", 2, "--config"},
      {"train -c none.yaml", 2, "none.yaml"},
      {"train -c broken.yaml", 2, "broken.yaml:"},
      {"train -c empty.yaml", 2, "empty.yaml is empty"},
      {"train -c data", 2, "data is a folder"},
      {"train -c c.yaml -o train.max_step=1", 2, "did you mean"},
      {"train -c c.yaml -o model.backbone.name=resnet19", 2, "did you mean"},
      {"train -c c.yaml -o model.head.num_classes=3", 2, "have 10 classes"},
      {"train -c c.yaml -o train.dataset.data_dir=nowhere", 2, "nowhere"},
      {"train -c c.yaml -o train.dataset.data_dir=cut", 2, "data_batch_1.bin"},
      {"train -c c.yaml -o train.loader.batch_size=1000", 2, "no batch"},
      {"train -c c.yaml -o parallel.backend=nativ", 2, "nativ"},
      {"train -c c.yaml -o parallel.shards=3 parallel.broadcast_buffers=False", 2,
       "broadcast_buffers"},
      {"train -c c.yaml -o model.resume=bad", 2, "state.json"},
      {"train -c c.yaml -o model.pretrained=none.safetensors", 2, "none.safetensors"},
      {"train -c c.yaml -o train.ckpt_save_dir=file/out", 2, "file is no folder"},
      {"train -c c.yaml --check -o train.ckpt_save_dir=file/out", 2, "train.ckpt_save_dir"},
      {"train -c c.yaml --eval", 2, "out"},
      {"train -c c.yaml --check -o parallel.backend=nativ", 2, "nativ"},
      {"train -c c.yaml --check -o model.head.num_classes=3", 2, "have 10 classes"},
      {"train -c c.yaml --check -o train.loader.batch_size=100000", 2, "no batch"},
      {"train -c c.yaml --check -o train.dataset.data_dir=nowhere train.loader.batch_size=100000",
       2, "no batch"},
      {"train -c c.yaml --check -o scheduler.scheduler=multi_step_decay", 2, "milestones"},
      {"train -c c.yaml --check -o model.resume=/nope", 2, "/nope"},
      {"train -c c.yaml --check -o model.resume=bad", 2, "state.json"},
      {"train -c c.yaml --check -o train.dataset.data_dir=cut", 2, "has 1 of 3073 bytes"},
      {"train -c c.yaml --check -o eval.dataset.data_dir=cut_test", 2, "cut_test/test_batch.bin"},
      {"trian -c c.yaml", 2, "did you mean"},
  };
  for (const auto& bad : table) {
    const auto result = run(lockstep_program() + " " + bad.args);
    EXPECT_EQ(result.status, bad.status) << bad.args << "\n" << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << bad.args << "\n"
                                                                         << result.err;
    EXPECT_NE(result.err.find(bad.message), std::string::npos) << bad.args << "\n" << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "out")) << bad.args;
  }
}

TEST_F(Program, ShippedConfigurationsAreGood) {
  const fs::path configs = fs::path(std::getenv("LOCKSTEP_SOURCE_DIR")) / "configs/cls/resnet";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    const auto result = run(lockstep_program() + " train --check -c=" + entry.path().string());
    EXPECT_EQ(result.status, 0) << entry.path() << result.err;
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST_F(Program, MixedPrecisionIsSaidAndDone) {
  const std::string low =
      "-o train.loader.batch_size=4 system.amp_level=O2 system.amp_level_infer=O1 "
      "system.drop_overflow_update=True \"loss_scaler={type: dynamic, loss_scale: 512}\" "
      "train.max_steps=3";
  const auto outcome = train(low, 2);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("amp_level O2: all but batch norm in bfloat16"), std::string::npos);
  EXPECT_NE(outcome.out.find("AMP level: O2"), std::string::npos);
  const auto records = read_metrics(folder_ / "out/metrics.jsonl");
  EXPECT_EQ(records.at(2).value("loss_scale"), 512);
  EXPECT_EQ(records.at(2).value("dropped_steps"), 0);
  const auto judged = train(low + " --eval");
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_NE(judged.out.find("AMP level: O1"), std::string::npos) << judged.out;
  EXPECT_NE(judged.out.find("Performance: {'acc': "), std::string::npos) << judged.out;
  EXPECT_NE(train(low + " --check").out.find("Precision: amp_level O2"), std::string::npos);
  const auto wrong = train("-o system.amp_level=O7");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("system.amp_level must be one of O0, O1, O2, O3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
