#include "lockstep/data/cifar100.h"

#include <gtest/gtest.h>

#include "lockstep/data/small_images.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TempDir;
using testing::write_text;

using Labels = Cifar100::Labels;

/// One record whose pixels all have the value `pixel`.
std::string record_of(int coarse, int fine, int pixel) {
  return std::string(1, static_cast<char>(coarse)) + static_cast<char>(fine) +
         std::string(Cifar100::kImageBytes, static_cast<char>(pixel));
}

TEST(Cifar100, HasFineAndCoarseLabels) {
  const TempDir dir;
  fs::create_directory(dir / "cifar-100-binary");
  write_text(dir / "cifar-100-binary/train.bin", record_of(3, 99, 7) + record_of(19, 0, 8));
  write_text(dir / "cifar-100-binary/test.bin", record_of(1, 2, 9));
  const auto fine = Cifar100::load(dir.path(), Split::kAll, Labels::kFine);
  ASSERT_EQ(fine.size(), 3);
  EXPECT_EQ(fine.num_classes(), 100);
  EXPECT_EQ(fine.label(0), 99);
  EXPECT_EQ(fine.label(2), 2);
  EXPECT_EQ(fine.image(1).size(), 3072u);
  EXPECT_EQ(fine.image(1).front(), 8);
  EXPECT_EQ(fine.image(2).back(), 9);
  const auto coarse = Cifar100::load(dir.path(), Split::kTrain, Labels::kCoarse);
  ASSERT_EQ(coarse.size(), 2);
  EXPECT_EQ(coarse.num_classes(), 20);
  EXPECT_EQ(coarse.label(0), 3);
  EXPECT_EQ(coarse.label(1), 19);
  EXPECT_EQ(count_cifar100(dir.path(), Split::kAll), 3);
  EXPECT_EQ(count_cifar100(dir / "none", Split::kAll), 0);
}

TEST(Cifar100, FaultsNameFileAndByte) {
  Cifar100 data;
  const auto fault = [&](const std::string& bytes) {
    return error_of(ErrorCode::kCorrupt, [&] { data.append(bytes, "train.bin"); });
  };
  EXPECT_NE(fault(record_of(1, 1, 1) + record_of(20, 1, 1))
                .find("train.bin: coarse label 20 at byte 3074 is not in [0, 20)"),
            std::string::npos);
  EXPECT_NE(fault(record_of(1, 100, 1)).find("fine label 100 at byte 1 is not in [0, 100)"),
            std::string::npos);
  EXPECT_NE(fault(record_of(1, 1, 1) + "ab")
                .find("the record at byte 3074 has 2 of 3074 bytes; the file is cut short or not "
                      "CIFAR-100 in binary form"),
            std::string::npos);
  EXPECT_NE(fault("").find("train.bin is empty"), std::string::npos);
  EXPECT_EQ(data.size(), 0);
}

TEST(Cifar100, MissingFilesAreNamed) {
  const TempDir dir;
  const auto load = [&] { Cifar100::load(dir.path(), Split::kTest, Labels::kFine); };
  EXPECT_NE(error_of(ErrorCode::kNotFound, load).find("holds none of test.bin"), std::string::npos);
  write_text(dir / "train.bin", record_of(0, 0, 0));
  EXPECT_NE(missing_cifar100_warning(dir.path(), Split::kAll).find("lacks test.bin"),
            std::string::npos);
  EXPECT_EQ(missing_cifar100_warning(dir.path(), Split::kTrain), "");
}

TEST(SmallImages, AreFoundByTypeAndLabels) {
  const TempDir dir;
  write_text(dir / "coarse_label_names.txt", "fish\ntrees\n");
  write_text(dir / "train.bin", record_of(3, 99, 7));
  const auto& coarse = small_images("Cifar100Dataset", true);
  EXPECT_EQ(coarse.num_classes, 20);
  EXPECT_EQ(coarse.class_names(dir.path()), (std::vector<std::string>{"fish", "trees"}));
  EXPECT_EQ(coarse.load(dir.path(), Split::kTrain)->label(0), 3);
  const auto& fine = small_images("Cifar100Dataset", false);
  EXPECT_TRUE(fine.class_names(dir.path()).empty());
  EXPECT_EQ(fine.load(dir.path(), Split::kTrain)->label(0), 99);
  EXPECT_EQ(fine.official_count(Split::kAll), 60'000);
  EXPECT_EQ(small_images("FashionMnistDataset", false).class_names(dir.path()).back(),
            "Ankle boot");
  for (const char* type : {"Cifar10Dataset", "MnistDataset"}) {
    EXPECT_EQ(small_images(type, false).type, type);
  }
}

}  // namespace
}  // namespace lockstep
