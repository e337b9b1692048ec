#pragma once
// Networks, losses, targets and metrics together: a network must learn a few samples by heart.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include "lockstep/base/file.h"
#include "tests/support/temp_folder.h"

namespace lockstep::inline internal {

class Overfit : public ::testing::Test {
 protected:
  /// The output of `command`; a failure fails the test.
  std::string shell(const std::string& command) {
    const auto log = folder_ / "output";
    const std::string line =
        fmt::format("cd {} && export PATH={}:$PATH && {} >{} 2>&1", folder_.path().string(),
                    std::getenv("LOCKSTEP_BIN_DIR"), command, log.string());
    const int status = std::system(line.c_str());
    auto text = read_file(log, 1 << 24);
    EXPECT_EQ(WEXITSTATUS(status), 0) << command << "\n" << text;
    return text;
  }

  /// Trains with `config` and `options` (KEY=VALUE ...) and returns the best value of the metric.
  double best_of(const std::filesystem::path& config, const std::string& metric,
                 const std::string& options = "") {
    const auto text = shell(fmt::format("lockstep train -c {} {} {}", config.string(),
                                        options.empty() ? "" : "-o", options));
    std::smatch match;
    const std::regex line(fmt::format("=> Best {}: ([0-9.]+) \n", metric));
    EXPECT_TRUE(std::regex_search(text, match, line)) << text;
    return match.empty() ? 0 : std::stod(match[1]);
  }

  /// A configuration beside the tests.
  static std::filesystem::path config_file(const std::string& name) {
    return std::filesystem::path(std::getenv("LOCKSTEP_SOURCE_DIR")) / "tests/train/overfit" / name;
  }

  /// Real pictures, if present, else an empty path.
  static std::filesystem::path real_data(const std::string& set) {
    const char* data = std::getenv("LOCKSTEP_TEST_DATA");
    const auto folder =
        data == nullptr ? std::filesystem::path() : std::filesystem::path(data) / set;
    return std::filesystem::exists(folder / "train.zip") ? folder : std::filesystem::path();
  }

  TempFolder folder_;
};

}  // namespace lockstep::inline internal
