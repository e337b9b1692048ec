#include "lockstep/ocr/transforms/decode.h"
#include "lockstep/ocr/transforms/image_frame.h"
#include "tests/data/errors.h"
#include "tests/ocr/transforms/encode_jpeg.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using FileBytes = std::vector<uint8_t>;

FileBytes jpeg_of(const cv::Mat& image, const std::vector<int>& arguments = {}) {
  FileBytes bytes;
  cv::imencode(".jpg", image, bytes, arguments);
  return bytes;
}

cv::Mat noise(int rows, int cols) {
  cv::Mat image(rows, cols, CV_8UC3);
  cv::RNG random(7);
  random.fill(image, cv::RNG::UNIFORM, 0, 256);
  return image;
}

cv::Mat decoded_jpeg(const FileBytes& bytes, bool ignore_orientation = false) {
  return decode_jpeg(bytes, ImageMode::kBgr, ignore_orientation).value();
}

std::string jpeg_fault_of(const FileBytes& bytes) {
  return error_of(ErrorCode::kCorrupt, [&] { decoded_jpeg(bytes); });
}

/// The beginning of the coded data: behind the header of the scan.
size_t scan_of(const FileBytes& bytes) {
  for (size_t at = 2;;) {
    const size_t length = size_t{bytes.at(at + 2)} * 256 + bytes.at(at + 3);
    if (bytes.at(at + 1) == 0xDA) return at + 2 + length;
    at += 2 + length;
  }
}

/// An EXIF segment in either byte order, with a first entry that is no orientation.
FileBytes with_exif(FileBytes jpeg, bool big, uint8_t orientation) {
  const auto two = [big](uint8_t value) { return big ? FileBytes{0, value} : FileBytes{value, 0}; };
  const auto four = [big](uint8_t value) {
    return big ? FileBytes{0, 0, 0, value} : FileBytes{value, 0, 0, 0};
  };
  const auto tag = [big](uint8_t high, uint8_t low) {
    return big ? FileBytes{high, low} : FileBytes{low, high};
  };
  FileBytes segment = {0xFF, 0xE1, 0, 46, 'E', 'x', 'i', 'f', 0, 0};
  const uint8_t order = big ? 'M' : 'I';
  segment.insert(segment.end(), {order, order});
  for (const auto& part :
       {two(42), four(8), two(2), tag(0x01, 0x28), two(3), four(1), two(2), two(0), tag(0x01, 0x12),
        two(3), four(1), two(orientation), two(0), four(0)}) {
    segment.insert(segment.end(), part.begin(), part.end());
  }
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

TEST(Jpeg, PixelsAreThoseOfOpenCv) {
  const std::vector<std::vector<int>> kinds = {
      {},
      {cv::IMWRITE_JPEG_QUALITY, 30},
      {cv::IMWRITE_JPEG_QUALITY, 100},
      {cv::IMWRITE_JPEG_PROGRESSIVE, 1},
      {cv::IMWRITE_JPEG_OPTIMIZE, 1, cv::IMWRITE_JPEG_RST_INTERVAL, 3}};
  for (const auto& image : {gradient(50, 70), noise(33, 65), noise(1, 1)}) {
    for (const auto& kind : kinds) {
      const auto bytes = jpeg_of(image, kind);
      const cv::Mat expected = cv::imdecode(bytes, cv::IMREAD_COLOR);
      EXPECT_EQ(cv::norm(decoded_jpeg(bytes), expected, cv::NORM_INF), 0);
      cv::Mat rgb;
      cv::cvtColor(expected, rgb, cv::COLOR_BGR2RGB);
      EXPECT_EQ(cv::norm(*decode_jpeg(bytes, ImageMode::kRgb, false), rgb, cv::NORM_INF), 0);
      EXPECT_EQ(cv::norm(*decode_jpeg(bytes, ImageMode::kGray, false),
                         cv::imdecode(bytes, cv::IMREAD_GRAYSCALE), cv::NORM_INF),
                0);
    }
  }
}

cv::Rect random_part(cv::Size size, cv::RNG& random) {
  const int width = random.uniform(1, size.width + 1), height = random.uniform(1, size.height + 1);
  return {random.uniform(0, size.width - width + 1), random.uniform(0, size.height - height + 1),
          width, height};
}

TEST(DecodePart, HasThePixelsOfTheWholePicture) {
  cv::RNG random(3);
  const cv::Mat images[] = {noise(133, 171), gradient(64, 48), noise(7, 5)};
  for (const auto& image : images) {
    for (const auto& [h, v] : {std::pair(1, 1), {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
      for (const bool progressive : {false, true}) {
        const auto bytes = jpeg_of_kind(image, {h, v, progressive});
        const cv::Mat whole = *decode_jpeg(bytes, ImageMode::kRgb, true);
        for (int i = 0; i < 60; ++i) {
          const cv::Rect part = random_part(whole.size(), random);
          const cv::Mat out = decode_part(bytes, [&](cv::Size size) {
            EXPECT_EQ(size, whole.size());
            return PicturePart{part};
          });
          ASSERT_EQ(out.size(), part.size());
          ASSERT_EQ(cv::norm(out, whole(part), cv::NORM_INF), 0)
              << h << "x" << v << " progressive " << progressive << " part " << part;
        }
      }
    }
  }
}

TEST(DecodePart, AReducedPictureIsOpenCvs) {
  const auto bytes = jpeg_of_kind(noise(133, 171), {2, 2});
  for (const auto& [denominator, flag] : {std::pair(2, cv::IMREAD_REDUCED_COLOR_2),
                                          {4, cv::IMREAD_REDUCED_COLOR_4},
                                          {8, cv::IMREAD_REDUCED_COLOR_8}}) {
    const int d = denominator;
    cv::Mat expected = cv::imdecode(bytes, flag);
    cv::cvtColor(expected, expected, cv::COLOR_BGR2RGB);
    const cv::Mat out = decode_part(bytes, [d](cv::Size size) {
      return PicturePart{{{0, 0}, size}, d};
    });
    ASSERT_EQ(out.size(), expected.size());
    EXPECT_EQ(cv::norm(out, expected, cv::NORM_INF), 0) << d;
    const cv::Rect part(40, 24, 80, 64);
    const cv::Mat some = decode_part(bytes, [&](cv::Size) { return PicturePart{part, d}; });
    ASSERT_EQ(some.size(), cv::Size(80 / d, 64 / d));
    EXPECT_EQ(cv::norm(some, expected(cv::Rect(40 / d, 24 / d, 80 / d, 64 / d)), cv::NORM_INF), 0);
  }
}

TEST(DecodePart, OtherFormatsAreDecodedWhole) {
  FileBytes bytes;
  const cv::Mat image = noise(20, 30);
  cv::imencode(".png", image, bytes);
  cv::Mat rgb;
  cv::cvtColor(image, rgb, cv::COLOR_BGR2RGB);
  const cv::Rect part(3, 4, 10, 9);
  const cv::Mat out = decode_part(bytes, [&](cv::Size) { return PicturePart{part, 2}; });
  EXPECT_EQ(cv::norm(out, rgb(part), cv::NORM_INF), 0);
}

TEST(DecodePart, FindsDamageOutsideOfThePart) {
  auto bytes = jpeg_of_kind(noise(256, 64), {2, 2});
  for (size_t at = bytes.size() - 300; at < bytes.size() - 200;
       at += 2) {  // no code has ones alone
    bytes[at] = 0xFF;
    bytes[at + 1] = 0;
  }
  EXPECT_NE(error_of(ErrorCode::kCorrupt,
                     [&] {
                       decode_part(bytes, [](cv::Size) { return PicturePart{{0, 0, 16, 16}}; });
                     })
                .find("a damaged JPEG"),
            std::string::npos);
  const cv::Rect top(0, 0, 16, 16);
  const auto unchecked = [&](cv::Size) { return PicturePart{top, 1, false}; };
  EXPECT_EQ(decode_part(bytes, unchecked).size(), top.size());
}

TEST(Jpeg, StandsUprightAsInOpenCv) {
  const auto plain = jpeg_of(gradient(20, 30));
  for (const bool big : {false, true}) {
    for (uint8_t orientation = 0; orientation <= 9; ++orientation) {
      const auto bytes = with_exif(plain, big, orientation);
      EXPECT_EQ(exif_orientation(bytes), orientation >= 1 && orientation <= 8 ? orientation : 1);
      const cv::Mat expected = cv::imdecode(bytes, cv::IMREAD_COLOR), image = decoded_jpeg(bytes);
      ASSERT_EQ(image.size(), expected.size()) << int{orientation};
      EXPECT_EQ(cv::norm(image, expected, cv::NORM_INF), 0) << int{orientation};
      EXPECT_EQ(decoded_jpeg(bytes, true).size(), cv::Size(30, 20));
    }
  }
  EXPECT_EQ(exif_orientation(plain), 1);
  auto cut = with_exif(plain, true, 6);
  for (; cut.size() > 2; cut.pop_back()) {
    EXPECT_TRUE(exif_orientation(cut) == 1 || exif_orientation(cut) == 6);
  }
}

TEST(Jpeg, DataThatAreDamagedAreAnError) {
  const auto good = jpeg_of(noise(64, 96));
  const size_t begin = scan_of(good), middle = (begin + good.size()) / 2;
  auto bad_code = good;
  for (size_t i = 0; i < 40; i += 2) {  // ones alone are no code
    bad_code[middle + i] = 0xFF;
    bad_code[middle + i + 1] = 0;
  }
  EXPECT_TRUE(jpeg_fault_of(bad_code).starts_with("a damaged JPEG (Corrupt JPEG data: "));

  auto missing = good;
  missing.erase(missing.begin() + static_cast<ptrdiff_t>(middle), missing.end() - 2);
  EXPECT_EQ(jpeg_fault_of(missing),
            "a damaged JPEG (Corrupt JPEG data: premature end of data segment)");

  auto restarts = jpeg_of(noise(64, 96), {cv::IMWRITE_JPEG_RST_INTERVAL, 2});
  const size_t first = scan_of(restarts);
  for (size_t i = first; i + 1 < restarts.size(); ++i) {
    if (restarts[i] != 0xFF || restarts[i + 1] != 0xD3) continue;
    restarts[i + 1] = 0xD6;
    break;
  }
  EXPECT_NE(jpeg_fault_of(restarts).find("instead of RST"), std::string::npos);
}

TEST(Jpeg, DataThatAreLeftOverAreAnErrorUnlessTheyPad) {
  const auto good = jpeg_of(gradient(60, 80));
  const auto with = [&good](size_t count, uint8_t byte) {
    auto bytes = good;
    bytes.insert(bytes.end() - 2, count, byte);
    return bytes;
  };
  const cv::Mat expected = decoded_jpeg(good);
  for (const auto& bytes : {with(4, 'x'), with(200, 0)}) {
    EXPECT_EQ(cv::norm(decoded_jpeg(bytes), expected, cv::NORM_INF), 0);
  }
  EXPECT_NE(jpeg_fault_of(with(60, 'x')).find("extraneous bytes"), std::string::npos);
}

/// Most flipped bits leave the valid data of another image. Only those are found after which codes
/// end too early or too late.
TEST(Jpeg, OfTurnedBitsSomeAreFound) {
  const auto good = jpeg_of(noise(64, 96));
  const cv::Mat expected = decoded_jpeg(good);
  const size_t begin = scan_of(good);
  int found = 0, tried = 0;
  for (size_t at = begin + 50; at + 50 < good.size(); at += 101, ++tried) {
    auto bad = good;
    bad[at] ^= 0x10;
    try {
      decoded_jpeg(bad);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      ++found;
    }
  }
  EXPECT_GT(found, tried / 20) << tried;
}

TEST(Png, AnyChangedByteOfTheDataIsAnError) {
  const auto good = encoded(noise(20, 30), ".png");
  const std::string begin = "IDAT", text(good.begin(), good.end());
  const size_t data = text.find(begin) + begin.size(), end = text.rfind("IEND") - 8;
  ASSERT_GT(end, data + 1000);
  for (size_t at = data; at < end; at += 97) {
    Sample sample;
    sample.encoded = good;
    sample.encoded[at] ^= 0x40;
    error_of(ErrorCode::kCorrupt, [&] { decode_image({}, sample); });
  }
}

}  // namespace
}  // namespace lockstep::ocr
