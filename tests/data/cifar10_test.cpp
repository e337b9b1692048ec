#include "lockstep/data/cifar10.h"

#include <gtest/gtest.h>

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TempDir;
using testing::write_text;

/// One record whose pixels all have the value `pixel`.
std::string record(int label, int pixel) {
  return std::string(1, static_cast<char>(label)) +
         std::string(Cifar10::kImageBytes, static_cast<char>(pixel));
}

TEST(Cifar10, ReadsTheFilesThatAreThereInOrder) {
  const TempDir dir;
  write_text(dir / "data_batch_5.bin", record(9, 50));
  write_text(dir / "data_batch_2.bin", record(1, 20) + record(2, 21));
  write_text(dir / "test_batch.bin", record(3, 30));
  const auto train = Cifar10::load(dir.path(), Split::kTrain);
  ASSERT_EQ(train.size(), 3);
  EXPECT_EQ(train.label(0), 1);
  EXPECT_EQ(train.label(1), 2);
  EXPECT_EQ(train.label(2), 9);
  EXPECT_EQ(train.image(1).size(), 3072u);
  EXPECT_EQ(train.image(1).front(), 21);
  EXPECT_EQ(train.image(2).back(), 50);
  EXPECT_EQ(Cifar10::load(dir.path(), Split::kTest).size(), 1);
  EXPECT_EQ(count_cifar10(dir.path(), Split::kTrain), 3);
  EXPECT_EQ(count_cifar10(dir.path(), Split::kTest), 1);
  EXPECT_EQ(count_cifar10(dir.path(), Split::kAll), 4);
  EXPECT_EQ(Cifar10::load(dir.path(), Split::kAll).size(), 4);
  EXPECT_EQ(count_cifar10(dir / "none", Split::kTest), 0);
}

TEST(Cifar10, SaysWhichFilesAreMissing) {
  const TempDir dir;
  EXPECT_EQ(missing_cifar10_warning(dir.path(), Split::kTrain), "") << "there are none";
  EXPECT_EQ(missing_cifar10_warning(dir / "none", Split::kAll), "");
  for (const auto* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_4.bin"}) {
    write_text(dir / name, record(1, 20));
  }
  EXPECT_EQ(missing_cifar10_warning(dir.path(), Split::kTrain),
            dir.path().string() +
                " lacks data_batch_3.bin, data_batch_5.bin: only the other 3 of 5 "
                "files are used");
  EXPECT_EQ(missing_cifar10_warning(dir.path(), Split::kTest), "");
  write_text(dir / "data_batch_3.bin", record(1, 20));
  write_text(dir / "data_batch_5.bin", record(1, 20));
  EXPECT_EQ(missing_cifar10_warning(dir.path(), Split::kTrain), "");
  EXPECT_NE(missing_cifar10_warning(dir.path(), Split::kAll).find(" lacks test_batch.bin: "),
            std::string::npos);
}

TEST(Cifar10, FindsTheFolderOfTheOfficialArchive) {
  const TempDir dir;
  fs::create_directory(dir / "cifar-10-batches-bin");
  EXPECT_TRUE(find_cifar10(dir.path()).empty());
  write_text(dir / "cifar-10-batches-bin/test_batch.bin", record(0, 0));
  EXPECT_EQ(find_cifar10(dir.path()), dir / "cifar-10-batches-bin");
  EXPECT_EQ(Cifar10::load(dir.path(), Split::kTest).size(), 1);
}

TEST(Cifar10, PartialRecordNamesFileAndOffset) {
  const TempDir dir;
  write_text(dir / "data_batch_1.bin", record(1, 1) + record(2, 2).substr(0, 1000));
  const auto text =
      error_of(ErrorCode::kCorrupt, [&] { Cifar10::load(dir.path(), Split::kTrain); });
  EXPECT_NE(text.find("data_batch_1.bin: the record at byte 3073 has 1000 of 3073 bytes"),
            std::string::npos)
      << text;
}

TEST(Cifar10, WrongLabelNamesFileAndOffset) {
  Cifar10 data;
  const auto text = error_of(ErrorCode::kCorrupt, [&] {
    data.append(record(1, 1) + record(9, 1) + record(10, 1), "some.bin");
  });
  EXPECT_NE(text.find("some.bin: label 10 at byte 6146"), std::string::npos) << text;
  EXPECT_EQ(data.size(), 0);
}

TEST(Cifar10, EmptyFileIsAnError) {
  Cifar10 data;
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { data.append("", "a.bin"); }).find("a.bin is empty"),
            std::string::npos);
}

TEST(Cifar10, FolderThatIsMissingOrEmptyOrUnreadable) {
  const TempDir dir;
  const auto load = [](const fs::path& path) {
    return [path] { Cifar10::load(path, Split::kTrain); };
  };
  EXPECT_NE(error_of(ErrorCode::kNotFound, load(dir / "none")).find("does not exist"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::kNotFound, load(dir.path())).find("holds none of data_batch_1.bin"),
            std::string::npos);
  // Neither of the next two is readable, even for root, whom permissions do not stop.
  fs::create_symlink("loop", dir / "loop");
  EXPECT_NE(error_of(ErrorCode::kIo, load(dir / "loop")).find("loop: "), std::string::npos);
  fs::create_directory(dir / "data_batch_1.bin");
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument, load(dir.path())).find("data_batch_1.bin"),
            std::string::npos);
}

TEST(Cifar10, TrainFilesAloneDoNotMakeATestSet) {
  const TempDir dir;
  write_text(dir / "data_batch_1.bin", record(1, 1));
  EXPECT_NE(error_of(ErrorCode::kNotFound, [&] { Cifar10::load(dir.path(), Split::kTest); })
                .find("holds none of test_batch.bin"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
