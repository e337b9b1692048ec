#include "lockstep/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-file-XXXXXX");
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  size_t num_files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST_F(FileTest, ReadsWhatWasWritten) {
  std::string bytes(100'000, 'x');
  bytes[50'000] = '\0';
  write_file_atomically(folder_ / "a", bytes);
  EXPECT_EQ(read_file(folder_ / "a"), bytes);
  write_file_atomically(folder_ / "a", "");
  EXPECT_EQ(read_file(folder_ / "a"), "");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(FileTest, ReadsAtAnOffsetUpToTheEnd) {
  write_file_atomically(folder_ / "a", "0123456789");
  const UniqueFd fd = open_to_read(folder_ / "a");
  char bytes[4];
  EXPECT_EQ(read_at(fd.get(), 3, bytes, 4, "it"), 4U);
  EXPECT_EQ(std::string(bytes, 4), "3456");
  EXPECT_EQ(read_at(fd.get(), 8, bytes, 4, "it"), 2U);
  EXPECT_EQ(read_at(fd.get(), 20, bytes, 4, "it"), 0U);
  EXPECT_EQ(code_of([&] { read_at(-1, 0, bytes, 4, "it"); }), ErrorCode::kIo);
}

TEST_F(FileTest, NewFilesAreWrittenInTheirPlaces) {
  write_file_atomically(folder_ / "0", "longer than the next");
  NewFiles files;
  for (int i = 0; i < 40; ++i) {  // more than are open at a time
    files.write(folder_ / std::to_string(i), [&](int fd) {
      reserve(fd, 3, "it");
      write_all(fd, "new", 3, "it");
      begin_writeback(fd, 0, 3);
    });
  }
  files.sync();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(read_file(folder_ / std::to_string(i)), "new");
  EXPECT_EQ(num_files(), 40u);
  EXPECT_EQ(code_of([&] { files.write(folder_ / "none/a", "x"); }), ErrorCode::kIo);
}

TEST_F(FileTest, ReservingMoreThanThereIsFailsBeforeAnyByte) {
  const FileSizeLimit limit(1000);
  NewFiles files;
  files.write(folder_ / "a", [&](int fd) { reserve(fd, 1000, "a"); });
  int64_t written = 0;
  const auto too_long = [&](int fd) {
    reserve(fd, 1001, "a");
    written = 1;
  };
  EXPECT_EQ(code_of([&] { files.write(folder_ / "a", too_long); }), ErrorCode::kIo);
  EXPECT_EQ(written, 0);
}

TEST_F(FileTest, ReadNamesWhatIsWrong) {
  EXPECT_EQ(code_of([&] { read_file(folder_ / "none"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { read_file(folder_); }), ErrorCode::kInvalidArgument);
  write_file_atomically(folder_ / "a", "12345");
  EXPECT_EQ(read_file(folder_ / "a", 5), "12345");
  EXPECT_EQ(code_of([&] { read_file(folder_ / "a", 4); }), ErrorCode::kCorrupt);
}

TEST_F(FileTest, ReadBoundsFilesWithoutASize) {
  // Files of /proc report a size of 0 bytes.
  EXPECT_FALSE(read_file("/proc/self/stat").empty());
  EXPECT_EQ(code_of([] { read_file("/proc/self/stat", 3); }), ErrorCode::kCorrupt);
}

TEST_F(FileTest, FailedWriteLeavesTheOldFileAlone) {
  write_file_atomically(folder_ / "a", "old");
  const auto broken = [](int fd) {
    write_all(fd, "new", 3, "a");
    throw Error(ErrorCode::kIo, "disk full");
  };
  EXPECT_EQ(code_of([&] { write_file_atomically(folder_ / "a", broken); }), ErrorCode::kIo);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(FileTest, WriteToAMissingFolderNamesThePath) {
  try {
    write_file_atomically(folder_ / "none" / "a", "x");
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none/a"), std::string::npos) << error.what();
  }
}

TEST_F(FileTest, WriteAllReportsAFullDevice) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  EXPECT_EQ(code_of([&] { write_all(full.get(), "x", 1, "it"); }), ErrorCode::kIo);
}

TEST(SyncFolder, DoesWithoutWhereTheFileSystemCannot) {
  EXPECT_NO_THROW(sync_folder("/proc/self"));  // EINVAL
  EXPECT_THROW(sync_folder("/nowhere"), Error);
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  const auto drop = folder / "drop";
  std::filesystem::create_directory(drop);
  std::filesystem::permissions(drop, std::filesystem::perms(0333));
  testing::as_ordinary_user([&] { EXPECT_NO_THROW(sync_folder(drop)); });
}

TEST(UniqueFd, OwnsOneDescriptor) {
  UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = a.get();
  UniqueFd b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
  EXPECT_EQ(b.get(), number);
  UniqueFd c(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  c = std::move(b);
  EXPECT_EQ(c.get(), number);
  c.reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace lockstep
