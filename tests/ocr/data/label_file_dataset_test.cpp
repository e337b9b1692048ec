#include "lockstep/ocr/data/label_file_dataset.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <set>

#include "lockstep/base/file.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::write_text;

/// IMAGE_0.png .. with labels L0 .. in DIR/NAME.txt, images (empty files) in DIR/NAME.
void write_set(const TempDir& dir, const std::string& name, int count) {
  std::filesystem::create_directories(dir / name);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string image = "image_" + std::to_string(i) + ".png";
    write_text((dir / name) / image, "");
    lines += image + "\t" + name + std::to_string(i) + "\n";
  }
  write_text(dir / (name + ".txt"), lines);
}

std::vector<std::string> labels_of(const LabelFiles& files) {
  const LabelFileDataset data(files);
  std::vector<std::string> result;
  for (int64_t i = 0; i < data.size(); ++i) result.push_back(data.load(i).label);
  return result;
}

TEST(LabelFileDataset, TakesTheLeadingPartOfEachFile) {
  const TempDir dir;
  write_set(dir, "a", 4);
  write_set(dir, "b", 3);
  const LabelFiles files{.data_dirs = {dir / "a", dir / "b"},
                         .label_files = {dir / "a.txt", dir / "b.txt"},
                         .sample_ratios = {0.5, 1.0}};
  EXPECT_EQ(labels_of(files), (std::vector<std::string>{"a0", "a1", "b0", "b1", "b2"}));
  const Sample sample = LabelFileDataset(files).load(3);
  EXPECT_EQ(sample.source, (dir / "b").string() + "/image_1.png");
  EXPECT_EQ(sample.label_source, (dir / "b.txt").string() + ":2");
  EXPECT_TRUE(sample.encoded.empty());
}

TEST(LabelFileDataset, ShufflingDrawsASubsetOfItsOwnForASeed) {
  const TempDir dir;
  write_set(dir, "a", 40);
  LabelFiles files{.data_dirs = {dir / "a"},
                   .label_files = {dir / "a.txt"},
                   .sample_ratios = {0.5},
                   .shuffle = true,
                   .seed = 3};
  const auto drawn = labels_of(files);
  EXPECT_EQ(std::set<std::string>(drawn.begin(), drawn.end()).size(), 20U);
  EXPECT_EQ(drawn, labels_of(files));
  files.seed = 4;
  EXPECT_NE(drawn, labels_of(files));
}

TEST(LabelFileDataset, AMissingImageAndABrokenLineCostThemselvesAlone) {
  const TempDir dir;
  write_set(dir, "a", 3);
  std::filesystem::remove(dir.path() / "a" / "image_1.png");
  const std::string path = dir / "a.txt";
  write_text(path, read_file(path, 1000) + "image_2.png\tx\ty\n");
  const LabelFileDataset data({.data_dirs = {dir / "a"}, .label_files = {path}});
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.load(0).label, "a0");
  EXPECT_EQ(data.load(2).label, "a2");
  const std::string missing = path + ":2: no image " + (dir / "a").string() + "/image_1.png";
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { data.load(1); }), missing);
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { data.load(3); }).substr(0, path.size() + 10),
            path + ":4: 2 tabs");
  const auto notes = data.notes();
  ASSERT_EQ(notes.size(), 2U);
  const std::string broken = path + ": 1 of 4 lines cannot be used; the first: " + path + ":4: ";
  EXPECT_EQ(notes[0].substr(0, broken.size()), broken);
  EXPECT_EQ(notes[1], path + ": 1 of 3 images looked for cannot be used; the first: " + missing);
}

/// The resident memory of this process in bytes.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(LabelFileDataset, AMillionLinesTakeMemoryForTheirPlacesAlone) {
  const TempDir dir;
  write_set(dir, "a", 1);
  {
    std::ofstream file(dir / "a.txt", std::ios::binary);
    for (int i = 0; i < 1'000'000; ++i) {
      file << "image_0.png\tthe text that stands in picture number " << i << "\n";
    }
  }
  const int64_t before = resident_bytes();
  const LabelFileDataset data({.data_dirs = {dir / "a"}, .label_files = {dir / "a.txt"}});
  EXPECT_LT(resident_bytes() - before, 100 << 20);
  ASSERT_EQ(data.size(), 1'000'000);
  EXPECT_EQ(data.load(999'999).label, "the text that stands in picture number 999999");
}

/// The peak of the memory since the last call.
int64_t peak_bytes() {
  int64_t kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kib = std::stol(line.substr(6));
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  return kib << 10;
}

TEST(LabelFileDataset, TwoMillionLinesAreShuffledQuicklyAndInLittleMemory) {
  const TempDir dir;
  write_set(dir, "a", 1);
  constexpr int kLines = 2'000'000;
  {
    std::ofstream file(dir / "a.txt", std::ios::binary);
    for (int i = 0; i < kLines; ++i) file << "image_0.png\tpicture number " << i << "\n";
  }
  peak_bytes();
  const int64_t before = resident_bytes();
  const auto begin = std::clock();  // CPU time, whatever the machine's load
  const LabelFileDataset data(
      {.data_dirs = {dir / "a"}, .label_files = {dir / "a.txt"}, .shuffle = true, .seed = 3});
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 3);
  EXPECT_LT(peak_bytes() - before, 200 << 20);
  EXPECT_EQ(data.size(), kLines);
  EXPECT_NE(data.load(0).label, "picture number 0");
}

TEST(LabelFileDataset, AFileOfWhichNothingCanBeUsedIsRefused) {
  const TempDir dir;
  write_set(dir, "a", 2);
  std::filesystem::create_directory(dir.path() / "b");
  const std::string path = dir / "a.txt";
  EXPECT_EQ(error_of(ErrorCode::kCorrupt,
                     [&] { LabelFileDataset{{.data_dirs = {dir / "b"}, .label_files = {path}}}; }),
            path + ":1: no image " + (dir / "b").string() + "/image_0.png");
}

TEST(LabelFileDataset, RefusesWhatDoesNotFit) {
  const TempDir dir;
  write_set(dir, "a", 2);
  const auto refused = [&](const LabelFiles& files) {
    error_of(ErrorCode::kInvalidArgument, [&] { LabelFileDataset{files}; });
  };
  refused({});
  refused({.data_dirs = {dir / "a", dir / "a"}, .label_files = {dir / "a.txt"}});
  refused({.data_dirs = {dir / "a"}, .label_files = {dir / "a.txt"}, .sample_ratios = {1.2}});
  refused({.data_dirs = {dir / "a"}, .label_files = {dir / "a.txt"}, .sample_ratios = {0.0}});
  error_of(ErrorCode::kNotFound,
           [&] { LabelFileDataset{{.data_dirs = {dir / "a"}, .label_files = {dir / "b.txt"}}}; });
}

}  // namespace
}  // namespace lockstep::ocr
