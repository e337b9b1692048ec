#include <algorithm>
#include <cctype>
#include <sstream>

#include "tests/train/overfit/overfit.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Two equal letters in a row need a frame between them; pictures of 32 x 40 have nine frames.
bool has_double(const std::string& text) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::adjacent_find(text.begin(), text.end(), same) != text.end();
}

/// 16 lines "FILE<TAB>TEXT" with short texts of letters and digits, none of them doubled.
std::string short_words(const std::string& labels) {
  const std::regex wanted("[^\t]+\t([0-9A-Za-z]{3,4})");
  std::istringstream lines(labels);
  std::string chosen;
  int count = 0;
  std::smatch match;
  for (std::string line; count < 16 && std::getline(lines, line);) {
    if (!std::regex_match(line, match, wanted) || has_double(match[1])) continue;
    chosen += line + "\n";
    ++count;
  }
  EXPECT_EQ(count, 16);
  return chosen;
}

TEST_F(Overfit, ARecogniserReads16Words) {
  const auto real = real_data("ocr_rec");
  fs::create_directories(folder_ / "rec");
  if (!real.empty()) {
    shell(fmt::format("cmake -E tar xf {}", (real / "train.zip").string()));
    fs::create_directories(folder_ / "rec/images");
    fs::rename(folder_ / "train", folder_ / "rec/images/train");
    write_file_atomically(folder_ / "rec/rec_gt.txt",
                          short_words(read_file(real / "rec_gt_train.txt", 1 << 24)));
  } else {
    shell("lockstep data synth-ocr --det 1 --rec 600 --difficulty easy -o drawn");
    fs::rename(folder_ / "drawn/rec/train/images", folder_ / "rec/images");
    write_file_atomically(folder_ / "rec/rec_gt.txt",
                          short_words(read_file(folder_ / "drawn/rec/train/rec_gt.txt", 1 << 24)));
  }
  EXPECT_EQ(best_of(config_file("rec.yaml"), "acc"), 1);
}

}  // namespace
}  // namespace lockstep
