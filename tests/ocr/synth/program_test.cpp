// lockstep data synth-ocr, as a user calls it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "lockstep/base/env.h"
#include "tests/support/temp_folder.h"

namespace lockstep::ocr {
namespace {

struct Outcome {
  int status = -1;
  std::string output;  // both streams
};

Outcome synth_ocr(const std::string& args) {
  const auto command =
      env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep-data synth-ocr " + args + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const size_t got = ::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(SynthOcrProgram, DrawsOnceAndFindsItThen) {
  const TempFolder folder;
  const auto args =
      fmt::format("--det 2 --rec 3 --size 320x240 -o {}/data", folder.path().string());
  for (const char* ending :
       {"/data: 7 pictures (drawn)\n", "/data: 7 pictures (already there)\n"}) {
    const Outcome outcome = synth_ocr(args);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, folder.path().string() + ending);
  }
}

TEST(SynthOcrProgram, BadInputEndsWithTwoAndOneLine) {
  for (const auto& [args, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "nothing to make"},
           {"--det 3 --size 640", "--size 640: must be WIDTHxHEIGHT"},
           {"--det 3 --difficulty norml", "did you mean 'normal'?"},
           {"--dett 3", "--dett"}}) {
    const Outcome outcome = synth_ocr(args);
    EXPECT_EQ(outcome.status, 2) << args;
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

}  // namespace
}  // namespace lockstep::ocr
