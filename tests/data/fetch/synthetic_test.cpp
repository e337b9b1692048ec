#include "lockstep/data/fetch/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "lockstep/base/file.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/data/synthetic_note.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::TempDir;

TEST(SyntheticCifar10, IsACompleteDataSet) {
  const TempDir dir;
  EXPECT_FALSE(is_synthetic(dir.path()));
  write_synthetic_cifar10(dir.path(), {.train_records = 203, .test_records = 30});
  EXPECT_TRUE(is_synthetic(dir.path()));
  const auto train = Cifar10::load(dir.path(), Split::kTrain);
  const auto test = Cifar10::load(dir.path(), Split::kTest);
  EXPECT_EQ(train.size(), 203);
  EXPECT_EQ(test.size(), 30);
  for (const auto& file : cifar10_files(Split::kTrain)) {
    EXPECT_GE(std::filesystem::file_size(dir / file), 40u * Cifar10::kRecordBytes);
  }
  std::array<int, 10> per_class{};
  for (int64_t i = 0; i < test.size(); ++i) ++per_class.at(static_cast<size_t>(test.label(i)));
  for (const int count : per_class) EXPECT_EQ(count, 3);
  EXPECT_TRUE(read_file(dir / "batches.meta.txt").starts_with("circle\nring\n"));
}

TEST(SyntheticCifar10, IsKnownByItsNoteAloneAlsoThatOfEarlierVersions) {
  const TempDir dir;
  const auto with_note = [&](const std::string& text) {
    write_file_atomically(dir / kSyntheticNote, text);
    return is_synthetic(dir.path());
  };
  EXPECT_TRUE(with_note("Synthetic data in place of CIFAR-10: rendered shapes"));
  EXPECT_TRUE(with_note("Generated stand-in for CIFAR-10: rendered shapes"));
  EXPECT_FALSE(with_note("CIFAR-10"));
}

TEST(SyntheticCifar10, NoPictureOccursTwice) {
  const TempDir dir;
  write_synthetic_cifar10(dir.path(), {.train_records = 200, .test_records = 200});
  std::set<std::vector<uint8_t>> seen;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const auto data = Cifar10::load(dir.path(), split);
    for (int64_t i = 0; i < data.size(); ++i) {
      const auto image = data.image(i);
      EXPECT_TRUE(seen.emplace(image.begin(), image.end()).second);
    }
  }
}

TEST(SyntheticCifar10, OneSeedOneDataSetOnAnyMachine) {
  const TempDir dir;
  for (const uint64_t seed : {0, 1}) {
    write_synthetic_cifar10(dir.path(), {.train_records = 20, .test_records = 10, .seed = seed});
    EXPECT_EQ(md5_of(dir / "test_batch.bin"),
              seed == 0 ? "2d8c534843de7528fb99540f0dbf3150" : "d64b61f8b6e41e7653478dfabac1c725");
  }
}

TEST(SyntheticCifar10, RefusesSenselessCounts) {
  const TempDir dir;
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [&] { write_synthetic_cifar10(dir.path(), {.train_records = 9}); })
                .find("9 training records"),
            std::string::npos);
  error_of(ErrorCode::kInvalidArgument, [&] {
    write_synthetic_cifar10(dir.path(), {.train_records = 100, .test_records = 2'000'000});
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

/// Points of a 60x60 grid over the shapes' square.
std::vector<bool> mask_of(int shape) {
  std::vector<bool> mask;
  for (int i = 0; i < 60; ++i) {
    for (int j = 0; j < 60; ++j) {
      mask.push_back(shape_contains(shape, (j - 29.5) / 20, (i - 29.5) / 20));
    }
  }
  return mask;
}

TEST(Shapes, LieInTheirCircle) {
  for (int shape = 0; shape < 10; ++shape) {
    for (int i = 0; i < 3600; ++i) {
      const double x = 3.0 * (i % 60) / 20 - 4.5;
      const double y = 3.0 * (i / 60) / 20 - 4.5;
      if (x * x + y * y > kShapeRadius * kShapeRadius) {
        EXPECT_FALSE(shape_contains(shape, x, y)) << kShapeNames.at(static_cast<size_t>(shape));
      }
    }
  }
}

TEST(Shapes, CoverEnoughAndDiffer) {
  for (int a = 0; a < 10; ++a) {
    const auto mask = mask_of(a);
    const auto area = std::count(mask.begin(), mask.end(), true);
    EXPECT_GT(area, 200) << kShapeNames.at(static_cast<size_t>(a));
    for (int b = 0; b < a; ++b) {
      const auto other = mask_of(b);
      int64_t differing = 0;
      for (size_t i = 0; i < mask.size(); ++i) differing += mask[i] != other[i] ? 1 : 0;
      EXPECT_GT(differing, 100) << a << " and " << b;
    }
  }
}

}  // namespace
}  // namespace lockstep
