#include "lockstep/ocr/transforms/decode.h"

#include <sys/stat.h>

#include <fstream>
#include <random>
#include <thread>

#include "lockstep/base/crc32.h"
#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/deadline.h"
#include "lockstep/ocr/transforms/image_frame.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

Sample sample_of(std::vector<uint8_t> bytes) {
  Sample sample;
  sample.source = "picture";
  sample.encoded = std::move(bytes);
  return sample;
}

cv::Mat decoded(const std::vector<uint8_t>& bytes, const DecodeImage& options = {}) {
  Sample sample = sample_of(bytes);
  decode_image(options, sample);
  return sample.image;
}

std::string fault_of(const std::vector<uint8_t>& bytes) {
  return error_of(ErrorCode::kCorrupt, [&] { decoded(bytes); });
}

/// An EXIF segment with the orientation, after the start of a JPEG.
std::vector<uint8_t> with_orientation(std::vector<uint8_t> jpeg, uint8_t orientation) {
  const std::vector<uint8_t> exif = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,
                                     'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,  // entries
                                     0x01, 0x12, 0, 3,  0,   0,   0,   1,   0, orientation,
                                     0,    0,  // orientation, short, one
                                     0,    0,    0, 0};
  jpeg.insert(jpeg.begin() + 2, exif.begin(), exif.end());
  return jpeg;
}

// The pipe has no writer, like a stalled disk.
TEST(Decode, SaysWhichFileItWaitsFor) {
  const testing::TempDir dir;
  const auto pipe = dir.path() / "late.png";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] {
    Sample sample;
    sample.source = pipe.string();
    EXPECT_THROW(decode_image({}, sample), Error);
  });
  const auto deadline = Deadline::after(std::chrono::minutes(1));
  while (longest_read().empty() && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(longest_read(), pipe.string());
  std::ofstream(pipe) << "no picture";
  reader.join();
  EXPECT_EQ(longest_read(), "");
}

TEST(Decode, ReadsColoursAsAsked) {
  const cv::Mat image = gradient(20, 30);
  const auto png = encoded(image, ".png");
  EXPECT_EQ(cv::norm(decoded(png), image, cv::NORM_INF), 0);
  EXPECT_EQ(decoded(png, {.img_mode = ImageMode::kRgb}).at<cv::Vec3b>(3, 4)[0],
            image.at<cv::Vec3b>(3, 4)[2]);
  EXPECT_EQ(decoded(png, {.img_mode = ImageMode::kGray}).type(), CV_8UC1);
  EXPECT_EQ(decoded(png, {.to_float32 = true}).type(), CV_32FC3);
}

TEST(Decode, JpegIsWhatOpenCvMakesOfIt) {
  for (const auto& bytes : {encoded(gradient(50, 70), ".jpg"), encoded(gradient(1, 1), ".jpg")}) {
    const cv::Mat expected = cv::imdecode(bytes, cv::IMREAD_COLOR);
    EXPECT_EQ(cv::norm(decoded(bytes), expected, cv::NORM_INF), 0);
    cv::Mat rgb;
    cv::cvtColor(expected, rgb, cv::COLOR_BGR2RGB);
    EXPECT_EQ(cv::norm(decoded(bytes, {.img_mode = ImageMode::kRgb}), rgb, cv::NORM_INF), 0);
    EXPECT_EQ(cv::norm(decoded(bytes, {.img_mode = ImageMode::kGray}),
                       cv::imdecode(bytes, cv::IMREAD_GRAYSCALE), cv::NORM_INF),
              0);
  }
  cv::Mat grey;
  cv::cvtColor(gradient(20, 30), grey, cv::COLOR_BGR2GRAY);
  const auto bytes = encoded(grey, ".jpg");
  EXPECT_EQ(cv::norm(decoded(bytes), cv::imdecode(bytes, cv::IMREAD_COLOR), cv::NORM_INF), 0);
}

TEST(Decode, FollowsTheCamerasOrientation) {
  const auto turned = with_orientation(encoded(gradient(20, 30), ".jpg"), 6);
  EXPECT_EQ(decoded(turned).size(), cv::Size(20, 30));
  EXPECT_EQ(decoded(turned, {.ignore_orientation = true}).size(), cv::Size(30, 20));
  EXPECT_EQ(decoded(with_orientation(encoded(gradient(20, 30), ".jpg"), 1)).size(),
            cv::Size(30, 20));
}

TEST(Decode, KeepsTheOriginalAndTheSize) {
  Sample sample = sample_of(encoded(gradient(20, 30), ".png"));
  decode_image({.keep_ori = true}, sample);
  sample.image.setTo(0);
  EXPECT_GT(cv::norm(sample.original), 0);
  EXPECT_EQ(sample.raw_size, cv::Size(30, 20));
  EXPECT_TRUE(sample.encoded.empty());
}

TEST(Decode, ReadsFiles) {
  const testing::TempDir dir;
  const auto bytes = encoded(gradient(20, 30), ".jpg");
  write_file_atomically(dir / "a.jpg", std::string(bytes.begin(), bytes.end()));
  Sample sample;
  sample.source = dir / "a.jpg";
  decode_image({}, sample);
  EXPECT_EQ(sample.image.size(), cv::Size(30, 20));
  sample.source = dir / "b.jpg";
  error_of(ErrorCode::kNotFound, [&] { decode_image({}, sample); });
}

TEST(Decode, RefusesWhatIsCutOff) {
  for (const char* extension : {".jpg", ".png"}) {
    const auto whole = encoded(gradient(60, 80), extension);
    EXPECT_EQ(image_fault(whole), "");
    for (size_t size = 1; size < whole.size() - 2; size += 1 + size / 10) {
      const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      error_of(ErrorCode::kCorrupt, [&] { decoded(part); });
    }
  }
  const auto jpeg = encoded(gradient(60, 80), ".jpg");
  EXPECT_EQ(fault_of({jpeg.begin(), jpeg.begin() + 1000}), "a JPEG that is cut off");
  auto appended = jpeg;
  appended.insert(appended.end(), 100, 'x');
  EXPECT_EQ(decoded(appended).size(), cv::Size(80, 60));
}

/// One chunk of a PNG, with its own checksum or with zeros.
std::vector<uint8_t> png_chunk(const std::string& type, const std::string& data, bool sound) {
  std::string chunk = type + data;
  const auto sum = sound ? crc32_of(chunk) : 0;
  const auto number = [](uint64_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  };
  chunk = number(data.size()) + chunk + number(sum);
  return {chunk.begin(), chunk.end()};
}

std::vector<uint8_t> with_chunk(std::vector<uint8_t> png, const std::vector<uint8_t>& chunk) {
  constexpr size_t kHeaderEnd = 33;
  png.insert(png.begin() + kHeaderEnd, chunk.begin(), chunk.end());
  return png;
}

// A profile of one byte is invalid; libpng would print that on standard error and continue.
TEST(Decode, OfAPngOnlyWhatPixelsDependOnCounts) {
  const cv::Mat image = gradient(20, 30);
  const auto png = encoded(image, ".png");
  for (const auto& chunk : {png_chunk("iCCP", "x", true), png_chunk("gAMA", "zero", false),
                            png_chunk("tEXt", "Title of it", true)}) {
    const auto other = with_chunk(png, chunk);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(cv::norm(decoded(other), image, cv::NORM_INF), 0);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(plain_png(other), png);
  }
  EXPECT_TRUE(plain_png(png).empty());
}

TEST(Decode, DamageOfAPngIsTheErrorAndNothingElse) {
  const auto png = encoded(gradient(60, 80), ".png");
  ::testing::internal::CaptureStderr();
  auto bad = png;
  bad[bad.size() / 2] ^= 0xFF;
  EXPECT_EQ(fault_of(bad), "a PNG with a damaged chunk IDAT at byte 33");
  EXPECT_EQ(fault_of({png.begin(), png.end() - 13}), "a PNG that is cut off");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Decode, RefusesABmpThatClaimsMoreThanItMay) {
  auto bmp = encoded(gradient(2, 2), ".bmp");
  bmp[18 + 2] = bmp[22 + 2] = 1;  // 65538 x 65538
  EXPECT_EQ(fault_of(bmp), "an image of 65538 x 65538 pixels; allowed: 1 to 268435456 in all");
  bmp[22 + 3] = 0xFF;  // the height is -2
  bmp[22 + 2] = bmp[22 + 1] = 0xFF;
  bmp[22] = 0xFE;
  bmp[18 + 2] = 0;
  EXPECT_EQ(image_fault(bmp), "");
}

TEST(Decode, ABmpThatIsCutOffIsTheErrorAndNothingElse) {
  const auto bmp = encoded(gradient(7, 5), ".bmp");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(image_fault(bmp), "");
  for (const size_t left : {bmp.size() - 1, bmp.size() / 2, size_t{54}, size_t{53}, size_t{20}}) {
    EXPECT_EQ(fault_of({bmp.begin(), bmp.begin() + static_cast<ptrdiff_t>(left)}),
              "a BMP that is cut off");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

/// The header of a grey TIFF of 40000 x 40000 pixels: more than OpenCV takes.
std::vector<uint8_t> huge_tiff() {
  std::vector<uint8_t> bytes = {'I', 'I', 42, 0, 8, 0, 0, 0};
  const auto add = [&](std::initializer_list<uint32_t> halves) {
    for (const uint32_t half : halves) {
      bytes.push_back(static_cast<uint8_t>(half & 0xFF));
      bytes.push_back(static_cast<uint8_t>(half >> 8));
    }
  };
  constexpr uint32_t kShort = 3, kWidth = 256, kHeight = 257, kBits = 258, kCompression = 259,
                     kColours = 262, kStrips = 273, kSamples = 277, kRows = 278, kCounts = 279;
  add({9});
  const std::vector<std::pair<uint32_t, uint32_t>> entries = {
      {kWidth, 40000}, {kHeight, 40000}, {kBits, 8}, {kCompression, 1}, {kColours, 1},
      {kStrips, 0},    {kSamples, 1},    {kRows, 1}, {kCounts, 1}};
  for (const auto& [tag, value] : entries) add({tag, kShort, 1, 0, value, 0});
  add({0, 0});
  return bytes;
}

TEST(Decode, ALimitOfOpenCvIsTheErrorOfThePicture) {
  const auto tiff = huge_tiff();
  EXPECT_EQ(fault_of(tiff).find("OpenCV: "), 0U) << fault_of(tiff);
  const auto whole = [](cv::Size size) { return PicturePart{{{0, 0}, size}}; };
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { decode_part(tiff, whole); }), fault_of(tiff));
}

TEST(Decode, RefusesOtherThings) {
  EXPECT_EQ(fault_of({'h', 'e', 'l', 'l', 'o'}), "no image, or a damaged one");
  auto huge = encoded(gradient(2, 2), ".png");
  for (size_t i = 16; i < 24; ++i) huge[i] = i % 4 == 1 ? 1 : 0;  // 65536 x 65536
  EXPECT_NE(fault_of(huge).find("65536 x 65536"), std::string::npos);
  Sample small = sample_of(encoded(gradient(6, 30), ".png"));
  small.min_side = 7;
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { decode_image({}, small); }).find("30 x 6"),
            std::string::npos);
  const testing::TempDir dir;
  testing::write_text(dir / "empty.jpg", "");
  Sample empty;
  empty.source = dir / "empty.jpg";
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { decode_image({}, empty); }), "an empty file");
}

TEST(Decode, DamagedBytesGiveAnImageOrAnError) {
  std::mt19937 random(5);
  for (const char* extension : {".jpg", ".png", ".bmp", ".webp", ".tiff"}) {
    const auto good = encoded(gradient(30, 40), extension);
    for (int round = 0; round < 60; ++round) {
      auto bad = good;
      for (int i = 0; i < 5; ++i) bad[random() % bad.size()] = static_cast<uint8_t>(random());
      try {
        decoded(bad);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      } catch (const cv::Exception&) {  // Pipeline::apply() converts it to an Error
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ocr
