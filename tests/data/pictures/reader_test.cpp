#include "lockstep/data/pictures/reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <set>

#include "lockstep/data/pictures/folder.h"
#include "tests/data/pictures/decode_expected.h"
#include "tests/data/pictures/drawn.h"
#include "tests/data/pictures/reference.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST(ReadPicture, GivesThePixelsOfLosslessFormats) {
  const TempFolder dir;
  for (const cv::Mat& picture : {textured_picture(53, 38), drawn_picture(9, 7)}) {
    for (const char* name :
         {"d.png", "d.bmp", "d.webp"}) {  // OpenCV's WebP is lossless unless told
      write_picture(dir / name, picture);
      EXPECT_EQ(bytes_of(read_picture(dir / name)), bytes_of(picture)) << name;
    }
  }
}

double mean_difference(const cv::Mat& one, const cv::Mat& other) {
  return cv::norm(one, other, cv::NORM_L1) / static_cast<double>(one.total() * 3);
}

// Pillow's bytes, but for four inks, which OpenCV rounds otherwise.
TEST(ReadPicture, DecodesEachKindOfJpegAsPillow) {
  const TempFolder dir;
  const cv::Mat picture = textured_picture(53, 38);
  const auto jpegs = jpegs_of(picture);
  ASSERT_EQ(jpegs.size(), std::size(kExpectedJpegs));
  for (size_t i = 0; i < jpegs.size(); ++i) {
    const auto& [kind, bytes] = jpegs[i];
    EXPECT_EQ(kind, kExpectedJpegs[i].kind);
    const cv::Mat out = read_as_file(bytes, dir / "d.jpg");
    EXPECT_TRUE(kind == "grey" || mean_difference(out, picture) < 7) << kind;
    if (kind != "four inks") {
      EXPECT_EQ(digest_of(out), kExpectedJpegs[i].digest) << kind;
      continue;
    }
    const cv::Mat pillows = rgb_of_inks(ocr::inks_of_jpeg(bytes));
    EXPECT_EQ(digest_of(pillows), kExpectedJpegs[i].digest) << kind;
    EXPECT_LE(cv::norm(out, pillows, cv::NORM_INF), 2) << kind;
  }
}

TEST(ReadPicture, DecodesLossyWebpAsPillow) {
  const TempFolder dir;
  const cv::Mat picture = textured_picture(53, 38);
  const std::vector<uint8_t> bytes(std::begin(kLossyWebp), std::end(kLossyWebp));
  const cv::Mat out = read_as_file(bytes, dir / "d.webp");
  EXPECT_EQ(digest_of(out), kExpectedLossyWebp);
  EXPECT_LT(mean_difference(out, picture), 8);
}

TEST(ReadPicture, GreyAndTransparentOnesBecomeRgb) {
  const TempFolder dir;
  ASSERT_TRUE(cv::imwrite((dir / "g.png").string(), cv::Mat(2, 3, CV_8U, cv::Scalar(77))));
  EXPECT_EQ(bytes_of(read_picture(dir / "g.png")), std::vector<int>(18, 77));
  // Transparent through and through, of a colour that stays.
  ASSERT_TRUE(
      cv::imwrite((dir / "t.png").string(), cv::Mat(1, 1, CV_8UC4, cv::Scalar(30, 20, 10, 0))));
  EXPECT_EQ(bytes_of(read_picture(dir / "t.png")), (std::vector<int>{10, 20, 30}));
}

TEST(ReadPicture, TheContentsDecideNotTheName) {
  const TempFolder dir;
  const cv::Mat drawn = drawn_picture(9, 7);
  write_picture(dir / "d.png", drawn);
  fs::rename(dir / "d.png", dir / "d.jpg");
  EXPECT_EQ(bytes_of(read_picture(dir / "d.jpg")), bytes_of(drawn));
}

/// A JPEG with EXIF's orientation 6, "rotate by 90 degrees", behind its first two bytes.
std::string turned_jpeg(const fs::path& upright) {
  std::ifstream file(upright, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  using namespace std::string_literals;
  const std::string exif = "Exif\0\0"s + "MM\0\x2A\0\0\0\x08"s + "\0\x01"s +
                           "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s + "\0\0\0\0"s;
  const std::string segment = "\xFF\xE1"s + '\0' + static_cast<char>(exif.size() + 2) + exif;
  return bytes.substr(0, 2) + segment + bytes.substr(2);
}

// As torchvision's ImageFolder: Pillow's Image.open().convert("RGB") turns nothing.
TEST(ReadPicture, IgnoresExifOrientation) {
  const TempFolder dir;
  write_picture(dir / "u.jpg", drawn_picture(16, 8));
  std::ofstream(dir / "t.jpg", std::ios::binary) << turned_jpeg(dir / "u.jpg");
  ASSERT_EQ(cv::imread((dir / "t.jpg").string()).size(), cv::Size(8, 16)) << "it has the mark";
  EXPECT_EQ(bytes_of(read_picture(dir / "t.jpg")), bytes_of(read_picture(dir / "u.jpg")));
}

TEST(ReadPicture, FaultsNameTheFile) {
  const TempFolder dir;
  const auto fault = [&](const std::string& name, const std::string& bytes) -> std::string {
    std::ofstream(dir / name, std::ios::binary) << bytes;
    const auto error = error_of([&] { read_picture(dir / name); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  };
  EXPECT_EQ(fault("e.png", ""), (dir / "e.png").string() + ": an empty file");
  EXPECT_EQ(fault("n.png", "no picture"),
            (dir / "n.png").string() + ": no image, or a damaged one");
  EXPECT_EQ(error_of([&] { read_picture(dir / "gone.png"); }).code(), ErrorCode::kNotFound);
  const std::string pipe = (dir / "pipe.png").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_STREQ(error_of([&] { read_picture(pipe); }).what(),
               (pipe + " is a named pipe, and no picture").c_str());
}

/// Twelve pictures 6 x 4 of two classes, of which the third and the eighth are damaged.
class Damaged : public ::testing::Test {
 protected:
  Damaged() {
    for (int i = 0; i < 12; ++i) {
      const auto path =
          dir_ / (std::string(i < 6 ? "a/" : "b/") + static_cast<char>('a' + i) + ".png");
      write_picture(path, drawn_picture(6, 4, i));
      if (i == 2 || i == 7) fs::resize_file(path, 40);
    }
  }
  PictureReader reader(BadSample bad) const {
    return {std::make_shared<PictureIndex>(index_folder(dir_.path())), PicturePipeline({}, 5), bad,
            5};
  }

  TempFolder dir_;
  const std::vector<int64_t> some_ = {1, 2, 3, 7};
};

TEST_F(Damaged, AreReplacedInTraining) {
  const auto read = reader(BadSample::kReplaced).read(0, some_);
  ASSERT_EQ(read.samples.size(), 4U);
  ASSERT_EQ(read.faults.size(), 2U);
  EXPECT_EQ(read.samples[0].index, 1);
  EXPECT_EQ(read.samples[2].index, 3);
  for (const size_t at : {size_t{1}, size_t{3}}) {
    const auto& replacement = read.samples[at];
    EXPECT_NE(replacement.index, some_[at]);
    EXPECT_EQ(replacement.label, replacement.index < 6 ? 0 : 1)
        << "the label is that of its picture";
    EXPECT_EQ(bytes_of(replacement.picture.pixels),
              bytes_of(drawn_picture(6, 4, static_cast<int>(replacement.index))));
  }
  EXPECT_EQ(read.faults[0].find("sample 2 cannot be used: " + (dir_ / "a/c.png").string()), 0U);
  EXPECT_NE(read.faults[0].find(") stands in its place"), std::string::npos);
  // The same one each time, another one in the next epoch or with luck the same.
  EXPECT_EQ(reader(BadSample::kReplaced).read(0, some_).samples[1].index, read.samples[1].index);
}

// Two draws of one damaged picture are of two pictures, each with the draw's own random values.
TEST_F(Damaged, AreReplacedByKey) {
  const PictureReader replaces(std::make_shared<PictureIndex>(index_folder(dir_.path())),
                               PicturePipeline({RandomCrop{6, 4}}, 5), BadSample::kReplaced, 5);
  const std::vector<int64_t> damaged(10, 2), keys = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto read = replaces.read(0, damaged, keys);
  ASSERT_EQ(read.samples.size(), 10U);
  EXPECT_EQ(read.faults.size(), 10U);
  std::set<int64_t> others;
  for (size_t i = 0; i < 10; ++i) {
    const std::vector<int64_t> other = {read.samples[i].index}, key = {keys[i]};
    others.insert(other[0]);
    EXPECT_EQ(bytes_of(read.samples[i].picture.pixels),
              bytes_of(replaces.read(0, other, key).samples[0].picture.pixels))
        << i;
  }
  EXPECT_GT(others.size(), 1U);
  const auto by_sample = replaces.read(0, damaged);
  EXPECT_EQ(by_sample.faults, std::vector<std::string>(10, by_sample.faults[0]));
  EXPECT_EQ(by_sample.faults[0], read.faults[2]) << "the key is the sample itself";
}

TEST_F(Damaged, AreLeftOutInEvaluation) {
  const auto read = reader(BadSample::kLeftOut).read(0, some_);
  ASSERT_EQ(read.samples.size(), 2U);
  EXPECT_EQ(read.samples[0].index, 1);
  EXPECT_EQ(read.samples[1].index, 3);
  EXPECT_EQ(read.faults.size(), 2U);
}

TEST(PictureReader, APictureWithAnotherKeyLooksDifferent) {
  const TempFolder dir;
  write_picture(dir / "a/1.png", textured_picture(53, 38));
  write_picture(dir / "a/2.png", textured_picture(53, 38));
  const PictureReader reader(
      std::make_shared<PictureIndex>(index_folder(dir.path())),
      PicturePipeline({RandomResizedCrop{{8, 6}}, ColorJitter{{0.5, 1.5}}}, 5),
      BadSample::kReplaced, 5);
  const std::vector<int64_t> samples = {0, 0, 1, 1}, keys = {0, 1, 0, 1};
  const auto read = reader.read(3, samples, keys);
  ASSERT_EQ(read.samples.size(), 4U);
  std::vector<std::vector<int>> bytes;
  for (const auto& sample : read.samples) bytes.push_back(bytes_of(sample.picture.pixels));
  EXPECT_NE(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0], bytes[2]) << "an equal picture with the same key";
  EXPECT_EQ(bytes[1], bytes[3]);
  const auto by_sample = reader.read(3, samples);
  EXPECT_EQ(bytes_of(by_sample.samples[1].picture.pixels), bytes[0]);
  EXPECT_EQ(bytes_of(by_sample.samples[2].picture.pixels), bytes[1]);
}

TEST(PictureReader, EndsWhenNothingCanBeRead) {
  const TempFolder dir;
  write_picture(dir / "a/1.png", drawn_picture(2, 2));
  fs::resize_file(dir / "a/1.png", 30);
  const PictureReader reader(std::make_shared<PictureIndex>(index_folder(dir.path())),
                             PicturePipeline({}, 5), BadSample::kReplaced, 5);
  const std::vector<int64_t> one = {0};
  const auto error = error_of([&] { reader.read(0, one); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("nor could 10 others"), std::string::npos);
}

TEST(PictureReader, NamesThePictureThatAnOwnTransformRefusesOrFailsAt) {
  const TempFolder dir;
  for (const int width : {4, 5, 6}) {
    write_picture(dir / fmt::format("a/{}.png", width), drawn_picture(width, 4));
  }
  const OwnTransform picky{"Picky", [](Picture& picture) {
                             if (picture.width() == 5) {
                               throw Error(ErrorCode::kInvalidArgument, "it is odd");
                             }
                             if (picture.width() == 6) throw std::out_of_range("no such row");
                           }};
  const PictureReader reader(std::make_shared<PictureIndex>(index_folder(dir.path())),
                             PicturePipeline({picky}, 5), BadSample::kLeftOut, 5);
  const auto read = reader.read(0, std::vector<int64_t>{0, 1});
  EXPECT_EQ(read.samples.size(), 1U);
  EXPECT_EQ(read.faults,
            std::vector<std::string>{"sample 1 cannot be used: " + (dir / "a/5.png").string() +
                                     ": Picky: it is odd"});
  try {
    reader.read(0, std::vector<int64_t>{2});
    ADD_FAILURE() << "no exception";
  } catch (const TransformFailed& failure) {
    EXPECT_EQ(failure.what(),
              (dir / "a/6.png").string() + ": the transform Picky failed: no such row");
  }
}

}  // namespace
}  // namespace lockstep
