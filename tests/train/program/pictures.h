#pragma once
// Programs that train on pictures in files.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

#include "lockstep/data/cifar10.h"
#include "tests/support/read_metrics.h"
#include "tests/train/program/program.h"

namespace lockstep::inline internal {

/// The configuration of the tests, with other data.
inline std::string config_with(const std::string& train, const std::string& eval) {
  std::string text = kConfig;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("    data_dir: data\n", train);
  replace("  dataset:\n    transform_pipeline: [{NormalizeImage: }]",
          "  dataset:\n" + eval + "    transform_pipeline: [{NormalizeImage: }]");
  return text;
}

class PicturesProgram : public Program {
 protected:
  /// A record as a PNG file.
  void write_record(const Cifar10& data, int64_t index, const std::filesystem::path& path) const {
    const auto planes = data.image(index);
    cv::Mat picture(32, 32, CV_8UC3);
    for (size_t i = 0; i < 1024; ++i) {
      for (size_t c = 0; c < 3; ++c) picture.data[i * 3 + 2 - c] = planes[c * 1024 + i];
    }
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(cv::imwrite(path.string(), picture)) << path;
  }

  /// The records in their order, and a list of them.
  void write_list(Split split, const std::string& name) const {
    const Cifar10 data = Cifar10::load(folder_ / "data", split);
    std::string list = "path,label\n";
    for (int64_t i = 0; i < data.size(); ++i) {
      const std::string file = fmt::format("{}/{:05}.png", name, i);
      write_record(data, i, folder_ / "png" / file);
      list += fmt::format("{},{}\n", file, data.label(i));
    }
    write_file_atomically(folder_ / (name + ".csv"), std::string_view(list));
  }

  void write_class_folders(Split split, const std::string& name) const {
    const Cifar10 data = Cifar10::load(folder_ / "data", split);
    for (int64_t i = 0; i < data.size(); ++i) {
      write_record(
          data, i,
          folder_ / name / fmt::format("kind{}", data.label(i)) / fmt::format("{:05}.png", i));
    }
  }

  void configure(const std::string& train, const std::string& eval) const {
    write_file_atomically(folder_ / "c.yaml", std::string_view(config_with(train, eval)));
  }

  /// Number and exact loss of each step.
  std::vector<std::string> steps_of(const std::string& folder) const {
    std::vector<std::string> steps;
    for (const auto& record : read_metrics(folder_ / folder / "metrics.jsonl")) {
      if (record.kind != "train") continue;
      steps.push_back(fmt::format("{} {:a}", record.step, record.value("loss").value_or(-1)));
    }
    return steps;
  }

  /// Each value of the last evaluation that does not depend on time, exactly.
  std::string evaluation_of(const std::string& folder) const {
    const auto last = read_metrics(folder_ / folder / "metrics.jsonl").back();
    EXPECT_EQ(last.kind, "eval");
    return fmt::format("{:a} {:a} {:a}", last.value("loss").value_or(-1),
                       last.value("acc").value_or(-1), last.value("samples").value_or(-1));
  }
};

}  // namespace lockstep::inline internal
