// The real records, if present (see CMakeLists.txt): as PNG files in folders of classes they train
// to the bits of the binary files.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "tests/train/program/pictures.h"

namespace lockstep {
namespace {

class RealPictures : public PicturesProgram {
 protected:
  void SetUp() override {
    PicturesProgram::SetUp();
    std::ifstream names(real_ / "batches.meta.txt");
    for (std::string name; std::getline(names, name) && !name.empty();) names_.push_back(name);
    ASSERT_EQ(names_.size(), 10U);
    ASSERT_TRUE(std::is_sorted(names_.begin(), names_.end())) << "folders would have other numbers";
    std::filesystem::create_directories(folder_ / "binary");
  }

  /// The first `count` records of a file, sorted by class as folders are: in binary/FILE, and as
  /// FOLDER/CLASS/NUMBER.png.
  void write_both(const std::string& file, const std::string& folder, size_t count) const {
    constexpr size_t kBytes = Cifar10::kRecordBytes;
    const std::string all = read_file(real_ / file);
    std::vector<std::string> records;
    for (size_t i = 0; i < count; ++i) records.push_back(all.substr(i * kBytes, kBytes));
    std::stable_sort(records.begin(), records.end(),
                     [](const auto& a, const auto& b) { return a[0] < b[0]; });
    std::string sorted;
    for (const auto& record : records) sorted += record;
    write_file_atomically(folder_ / "binary" / file, std::string_view(sorted));
    Cifar10 data;
    data.append(sorted, file);
    for (int64_t i = 0; i < data.size(); ++i) {
      const auto& name = names_.at(static_cast<size_t>(data.label(i)));
      write_record(data, i, folder_ / folder / name / fmt::format("{:05}.png", i));
    }
  }

  /// Losses, accuracy and weights after training into `results`.
  std::string trained(const std::string& results, int ranks) const {
    const auto done = train(
        "-o scheduler.num_epochs=1 parallel.virtual_ranks=2 "
        "train.loader.num_workers=2 train.ckpt_save_dir=" +
            results,
        ranks);
    EXPECT_EQ(done.status, 0) << done.err;
    const auto steps = steps_of(results);
    EXPECT_EQ(steps.size(), 12U);
    return fmt::format("{}\n{}\n", fmt::join(steps, "\n"), evaluation_of(results)) +
           bytes(results + "/latest/model.safetensors");
  }

  std::filesystem::path real_ = env_or("LOCKSTEP_TEST_DATA", "") + "/cifar10";
  std::vector<std::string> names_;
};

TEST_F(RealPictures, TrainToTheBitsOfTheBinaryFilesOnAnyRanks) {
  write_both("data_batch_1.bin", "train", 192);
  write_both("test_batch.bin", "test", 128);
  configure("    type: Cifar10Dataset\n    data_dir: binary\n", "    type: Cifar10Dataset\n");
  const std::string expected = trained("binary1", 1);
  EXPECT_TRUE(trained("binary2", 2) == expected);
  configure("    type: ImageFolderDataset\n    data_dir: train\n",
            "    type: ImageFolderDataset\n    data_dir: test\n");
  EXPECT_TRUE(trained("pictures1", 1) == expected) << evaluation_of("pictures1");
  EXPECT_TRUE(trained("pictures2", 2) == expected) << evaluation_of("pictures2");
}

}  // namespace
}  // namespace lockstep
