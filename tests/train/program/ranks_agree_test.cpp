// Ranks that differ in values that must be equal.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Otherwise a host that has its weights would wait for a downloading one only for the timeout of
// the rendezvous.
TEST_F(Program, RanksMeetBeforeTheyDownload) {
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto result = run("env XDG_CACHE_HOME=cache PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 -- lockstep train -c c.yaml -o "
                          "model.pretrained=http://127.0.0.1:1/x.ckpt");
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_TRUE(std::regex_search(result.err, std::regex("rank [01]: downloading http")))
      << "who says so knows its rank: " << result.err;
}

/// Rank 1 has additional options, or other values, on its own host.
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

// A rank that rounds in another way differs in the last bits of its results.
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

TEST_F(Program, TeachersOfDifferentWeightsAreRefused) {
  const std::string once = " train.max_steps=1 system.val_while_train=False";
  for (const char* teacher : {"1", "2"}) {
    const auto made =
        train(fmt::format("-o train.ckpt_save_dir=t{0} system.seed={0}", teacher) + once);
    ASSERT_EQ(made.status, 0) << made.err;
  }
  const std::string loss =
      "loss:\n  name: DistillationLoss\n  teacher:\n"
      "    network: {name: mobilenet_v3_small}\n    head: {num_classes: 10}\n"
      "    pretrained: t1/latest\n";
  write_file_atomically(folder_ / "c.yaml", std::string_view(kConfig + loss));
  write_file_atomically(folder_ / "worker.sh",
                        std::string_view("[ $RANK = 0 ] || set -- \"$@\" "
                                         "loss.teacher.pretrained=$OTHER; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto two = [&](const std::string& other, const std::string& search) {
    return run("env OTHER=" + other + " PATH=" + path +
               ":$PATH lockstep run --nproc_per_node 2 -- sh worker.sh lockstep train -c c.yaml " +
               search + " -o" + once);
  };
  for (const char* search : {"", "--find_lr 10"}) {
    const auto refused = two("t2/latest", search);
    EXPECT_EQ(refused.status, 2) << refused.out << refused.err;
    EXPECT_NE(refused.err.find("lockstep train: error: the ranks differ: the teacher "
                               "(loss.teacher.pretrained) of rank 1 has other weights than that of "
                               "rank 0"),
              std::string::npos)
        << refused.err;
  }
  fs::copy(folder_ / "t1/latest/", folder_ / "copy", fs::copy_options::recursive);
  const auto same = two("copy", "");
  EXPECT_EQ(same.status, 0) << same.err;
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

}  // namespace
}  // namespace lockstep
