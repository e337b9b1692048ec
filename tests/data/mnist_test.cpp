#include "lockstep/data/mnist.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "lockstep/data/transforms.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TempDir;
using testing::write_text;

using Kind = Mnist::Kind;

std::string number_of(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

/// An idx file of `count` images, each all of its number plus `first`.
std::string images_file(uint32_t count, int first = 0, uint32_t rows = 28) {
  std::string bytes = number_of(0x803) + number_of(count) + number_of(rows) + number_of(28);
  for (uint32_t i = 0; i < count; ++i) {
    bytes += std::string(size_t{rows} * 28, static_cast<char>(first + static_cast<int>(i)));
  }
  return bytes;
}

std::string labels_file(const std::string& labels) {
  return number_of(0x801) + number_of(static_cast<uint32_t>(labels.size())) + labels;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(bytes.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(Mnist, ReadsPlainAndCompressedFiles) {
  const TempDir dir;
  write_text(dir / "train-images-idx3-ubyte", images_file(3, 50));
  write_text(dir / "train-labels-idx1-ubyte.gz", gzipped(labels_file({9, 0, 4})));
  write_text(dir / "t10k-images.idx3-ubyte.gz", gzipped(images_file(2, 90)));
  write_text(dir / "t10k-labels.idx1-ubyte", labels_file({1, 2}));
  const auto train = Mnist::load(dir.path(), Split::kTrain, Kind::kDigits);
  ASSERT_EQ(train.size(), 3);
  EXPECT_EQ(train.label(0), 9);
  EXPECT_EQ(train.label(2), 4);
  EXPECT_EQ(train.image(1).size(), 784u);
  EXPECT_EQ(train.image(1).front(), 51);
  const auto all = Mnist::load(dir.path(), Split::kAll, Kind::kDigits);
  ASSERT_EQ(all.size(), 5);
  EXPECT_EQ(all.label(4), 2);
  EXPECT_EQ(all.image(4).back(), 91);
  EXPECT_EQ(count_mnist(dir.path(), Split::kAll, Kind::kDigits), 5);
  EXPECT_EQ(count_mnist(dir.path(), Split::kTest, Kind::kFashion), 2);
}

TEST(Mnist, LooksWhereTorchvisionPutsThem) {
  const TempDir dir;
  fs::create_directories(dir / "FashionMNIST/raw");
  write_text(dir / "FashionMNIST/raw/t10k-images-idx3-ubyte", images_file(1));
  write_text(dir / "FashionMNIST/raw/t10k-labels-idx1-ubyte", labels_file({3}));
  EXPECT_EQ(Mnist::load(dir.path(), Split::kTest, Kind::kFashion).size(), 1);
  EXPECT_EQ(count_mnist(dir.path(), Split::kTest, Kind::kDigits), 0);
  const auto load = [&](Split split, Kind kind) {
    return [&dir, split, kind] { Mnist::load(dir.path(), split, kind); };
  };
  EXPECT_NE(error_of(ErrorCode::kNotFound, load(Split::kTest, Kind::kDigits))
                .find("holds no t10k-images-idx3-ubyte, nor with .gz"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::kNotFound, load(Split::kTrain, Kind::kFashion))
                .find("raw holds no train-images-idx3-ubyte"),
            std::string::npos);
  EXPECT_NE(missing_mnist_warning(dir.path(), Split::kAll, Kind::kFashion)
                .find("raw lacks the files of train"),
            std::string::npos);
  EXPECT_EQ(missing_mnist_warning(dir.path(), Split::kTest, Kind::kFashion), "");
  fs::remove(dir / "FashionMNIST/raw/t10k-labels-idx1-ubyte");
  EXPECT_NE(error_of(ErrorCode::kNotFound, load(Split::kTest, Kind::kFashion))
                .find("has no t10k-labels-idx1-ubyte or .gz beside t10k-images-idx3-ubyte"),
            std::string::npos);
}

std::string fault_of(const std::string& images, const std::string& labels) {
  const std::string images_name = "i.idx", labels_name = "l.idx";
  Mnist data;
  auto text = error_of(ErrorCode::kCorrupt, [&] {
    data.append({images, images_name}, {labels, labels_name});
  });
  EXPECT_EQ(data.size(), 0);
  return text;
}

TEST(Mnist, FaultsAreOneLine) {
  const std::string labels = labels_file({1, 2});
  EXPECT_EQ(fault_of("abc", labels), "i.idx: 3 bytes; the header of an idx file has 16");
  EXPECT_EQ(fault_of(labels_file(std::string(20, 1)), labels),
            "i.idx: begins with 0x00000801; an idx file of bytes in 3 dimensions begins with "
            "0x00000803");
  EXPECT_EQ(fault_of(images_file(2).substr(0, 1000), labels),
            "i.idx: 984 bytes behind its header, which says 2 x 28 x 28: the file is cut short");
  EXPECT_EQ(fault_of(images_file(2) + "x", labels),
            "i.idx: 1569 bytes behind its header, which says 2 x 28 x 28: it is not this kind of "
            "file");
  EXPECT_EQ(fault_of(images_file(2, 0, 32), labels), "i.idx: images of 32 x 28; allowed: 28 x 28");
  EXPECT_EQ(fault_of(images_file(3), labels), "l.idx: 2 labels; i.idx has 3 images");
  EXPECT_EQ(fault_of(images_file(2), labels_file({1, 10})),
            "l.idx: label 10 of image 1 is not in [0, 10)");
  EXPECT_EQ(fault_of(images_file(0), labels_file("")), "i.idx: no image");
}

TEST(Mnist, AHugeHeaderIsNotBelieved) {
  const std::string huge = number_of(0x803) + std::string(12, '\xFF');
  EXPECT_NE(fault_of(huge, labels_file({1})).find("the file is cut short"), std::string::npos);
}

TEST(Gunzip, FaultsAreOneLine) {
  const std::string whole = gzipped(std::string(100'000, 'a') + "b");
  EXPECT_EQ(gunzip(whole, "a.gz", 1 << 20), std::string(100'000, 'a') + "b");
  EXPECT_EQ(gunzip(gzipped("one ") + gzipped("two"), "a.gz", 1 << 20), "one two");
  const auto fault = [](const std::string& bytes, size_t limit) {
    return error_of(ErrorCode::kCorrupt, [&] { gunzip(bytes, "a.gz", limit); });
  };
  EXPECT_EQ(fault(whole.substr(0, whole.size() - 9), 1 << 20),
            "a.gz: the compressed data are cut short");
  EXPECT_EQ(fault("", 1 << 20), "a.gz: the compressed data are cut short");
  EXPECT_NE(fault("no gzip at all", 1 << 20).find("a.gz: no file of gzip, or a damaged one"),
            std::string::npos);
  EXPECT_EQ(fault(whole, 1000), "a.gz: more than 1000 bytes when expanded");
}

TEST(ImageTransform, AGreyImageMayHaveThreeEqualChannels) {
  std::vector<uint8_t> image(6);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(40 * i);
  const ImageShape grey{1, 2, 3};
  const ImageTransform three({RandomHorizontalFlip{1}, Normalize{{0, 0.5, 0}, {1, 1, 0.5}}}, grey,
                             1, 3);
  EXPECT_EQ(three.output(), (ImageShape{3, 2, 3}));
  std::vector<float> out(18);
  three.apply(image, 0, 0, out);
  const std::vector<size_t> mirrored = {2, 1, 0, 5, 4, 3};
  for (size_t i = 0; i < 6; ++i) {
    const float value = static_cast<float>(image[mirrored[i]]) / 255.0F;
    EXPECT_EQ(out[i], value);
    EXPECT_EQ(out[6 + i], value - 0.5F);
    EXPECT_EQ(out[12 + i], value / 0.5F);
  }
  const ImageTransform one({Normalize{{0}, {1}}}, grey, 1, 1);
  EXPECT_EQ(one.output(), grey);
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       ImageTransform({}, {3, 2, 2}, 1, 1);
                     })
                .find("images of 3 channels cannot become 1"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
