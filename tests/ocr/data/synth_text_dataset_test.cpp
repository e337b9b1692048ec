#include "lockstep/ocr/data/synth_text_dataset.h"

#include <matio.h>

#include <memory>

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using testing::TempDir;

matvar_t* cells(const char* name, size_t count) {
  std::array<size_t, 2> sizes = {1, count};
  return Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, sizes.data(), nullptr, 0);
}

/// A character matrix of equally long rows.
matvar_t* text(const std::vector<std::string>& rows) {
  std::string columns;
  for (size_t x = 0; x < rows[0].size(); ++x) {
    for (const auto& row : rows) columns += row[x];
  }
  std::array<size_t, 2> sizes = {rows.size(), rows[0].size()};
  return Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UINT8, 2, sizes.data(), columns.data(), 0);
}

matvar_t* boxes(std::vector<float> numbers) {
  std::array<size_t, 3> sizes = {2, 4, numbers.size() / 8};
  return Mat_VarCreate(nullptr, MAT_C_SINGLE, MAT_T_SINGLE, sizes[2] == 1 ? 2 : 3, sizes.data(),
                       numbers.data(), 0);
}

using Field = std::pair<const char*, std::vector<matvar_t*>>;

void write_mat(const std::filesystem::path& path, const std::vector<Field>& fields) {
  mat_t* file = Mat_CreateVer(path.c_str(), nullptr, MAT_FT_MAT5);
  for (const auto& [name, values] : fields) {
    matvar_t* variable = cells(name, values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      Mat_VarSetCell(variable, static_cast<int>(i), values[i]);
    }
    EXPECT_EQ(Mat_VarWrite(file, variable, MAT_COMPRESSION_NONE), 0);
    Mat_VarFree(variable);
  }
  Mat_Close(file);
}

TEST(SynthTextDataset, ReadsNamesBoxesAndWords) {
  const TempDir dir;
  write_mat(dir / "gt.mat", {{"imnames", {text({"8/a.jpg"}), text({"9/bb.jpg"})}},
                             {"wordBB",
                              {boxes({1,  2,  3,  4,  5,  6,  7,  8.5F, 11, 12, 13, 14,
                                      15, 16, 17, 18, 21, 22, 23, 24,   25, 26, 27, 28}),
                               boxes({0, 1, 2, 3, 4, 5, 6, 7})}},
                             {"txt", {text({"two\nwords ", "three     "}), text({"one"})}}});
  const SynthTextDataset data("/pictures", dir / "gt.mat");
  ASSERT_EQ(data.size(), 2);
  const Sample sample = data.load(0);
  EXPECT_EQ(sample.source, "/pictures/8/a.jpg");
  ASSERT_EQ(sample.regions.size(), 3U);
  EXPECT_EQ(sample.regions[0].polygon, (Polygon{{1, 2}, {3, 4}, {5, 6}, {7, 8.5F}}));
  EXPECT_EQ(sample.regions[0].text, "two");
  EXPECT_EQ(sample.regions[1].text, "words");
  EXPECT_EQ(sample.regions[2].text, "three");
  EXPECT_EQ(sample.regions[2].polygon[3], cv::Point2f(27, 28));
  EXPECT_FALSE(sample.regions[2].ignored);
  EXPECT_EQ(data.load(1).regions.at(0).polygon[3], cv::Point2f(6, 7));
}

TEST(SynthTextDataset, BoxesWithoutWordsAreABadSample) {
  const TempDir dir;
  write_mat(dir / "gt.mat", {{"imnames", {text({"a.jpg"})}},
                             {"wordBB", {boxes({0, 1, 2, 3, 4, 5, 6, 7})}},
                             {"txt", {text({"one two"})}}});
  const SynthTextDataset data(dir.path(), dir / "gt.mat");
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { data.load(0); }).find("1 boxes for 2 words"),
            std::string::npos);
}

TEST(SynthTextDataset, RefusesOtherFiles) {
  const TempDir dir;
  const auto refused = [&](ErrorCode code) {
    return error_of(code, [&] { SynthTextDataset(dir.path(), dir / "gt.mat"); });
  };
  refused(ErrorCode::kNotFound);
  testing::write_text(dir / "gt.mat",
                      "not a MATLAB file, though it is long enough for a header, "
                      "which takes 128 bytes of text, a version and a mark......");
  refused(ErrorCode::kCorrupt);
  write_mat(dir / "gt.mat", {{"imnames", {text({"a.jpg"})}}});
  EXPECT_NE(refused(ErrorCode::kCorrupt).find("'wordBB'"), std::string::npos);
  write_mat(dir / "gt.mat", {{"imnames", {boxes({0, 1, 2, 3, 4, 5, 6, 7})}}});
  EXPECT_NE(refused(ErrorCode::kCorrupt).find("imnames{1}"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::ocr
