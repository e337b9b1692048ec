// The program lockstep-data from a user's view.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

struct Outcome {
  int status;
  std::string output;  // both streams
};

std::string program() {
  return env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep-data";
}

Outcome shell(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  std::array<char, 4096> buffer;
  while (const size_t got = ::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

Outcome run(const std::string& args) {
  return shell(program() + " " + args);
}

TEST(LockstepData, GeneratesOnceAndFindsItThen) {
  const testing::TempDir dir;
  const auto command =
      fmt::format("cifar10 --dir {}/c10 --generate --records 100", dir.path().c_str());
  for (const bool first : {true, false}) {
    const auto outcome = run(command);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output.find("generated 100 training") != std::string::npos, first);
    EXPECT_NE(outcome.output.find("100 training and 20 test records (synthetic data)"),
              std::string::npos)
        << outcome.output;
  }
}

TEST(LockstepData, BadInputEndsWithTwoAndOneLine) {
  const testing::TempDir dir;
  testing::write_text(dir / "data_batch_1.bin", "far too short");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "SET is needed: cifar10, images, synth-ocr"},
      {"cifra10", "did you mean 'cifar10'?"},
      {"cifar10 --recods 5", "--recods"},
      {"cifar10 --md5 00", "--md5 requires --url"},
      {fmt::format("cifar10 --generate --records 3 --dir {}/a", dir.path().c_str()),
       "3 training records"},
      {"images photos --network resnet19",
       "--network: no network 'resnet19', did you mean 'resnet18'? (there are: resnet18, "},
      {"cifar10 --generate --dir ''", "the folder of the data set has an empty name"},
      {"cifar10 --generate --dir /proc/x/c10", "cannot make the folder /proc/x: No such file"},
      {"cifar10 --generate --dir /proc/x", "cannot make the folder /proc/x.tmp: No such file"},
      {fmt::format("cifar10 --dir {}", dir.path().c_str()), "has 13 of 3073 bytes"}};
  for (const auto& [args, expected] : cases) {
    const auto outcome = run(args);
    EXPECT_EQ(outcome.status, 2) << args;
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("lockstep data: error: ")) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

TEST(LockstepData, UnreachablePlaceEndsWithOne) {
  const testing::TempDir dir;
  const auto outcome = run(
      fmt::format("cifar10 --dir {}/c10 --url http://127.0.0.1:1/a --md5 00", dir.path().c_str()));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("cannot be had"), std::string::npos) << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(LockstepData, SaysHowToBuildTheProgramThatDrawsText) {
  const testing::TempDir dir;
  std::filesystem::copy_file(program(), dir / "lockstep-data");
  const auto outcome =
      shell(fmt::format("PATH=/nowhere {}/lockstep-data synth-ocr --det 1", dir.path().c_str()));
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(
      outcome.output,
      "lockstep data: error: synth-ocr: program lockstep-data-synth-ocr is neither beside "
      "lockstep-data nor in PATH; scripts/build.sh release lockstep-data-synth-ocr builds it\n");
}

}  // namespace
}  // namespace lockstep
