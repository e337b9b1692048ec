#include "lockstep/data/fetch/archive.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "tests/data/errors.h"
#include "tests/data/fetch/make_archive.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::cifar_record;
using testing::error_of;
using testing::make_archive;
using testing::TempDir;
using testing::write_text;

TEST(UnpackCifar10, TakesTheDataFilesAlone) {
  const TempDir dir;
  fs::create_directory(dir / "out");
  make_archive(dir / "a.tar.gz",
               {{"cifar-10-batches-bin/data_batch_1.bin", cifar_record(1, 2)},
                {"cifar-10-batches-bin/batches.meta.txt", "airplane\n"},
                {"cifar-10-batches-bin/readme.html", "<html>"},
                {"cifar-10-batches-bin/data_batch_2.bin", "", /*link_to=*/"/etc/passwd"},
                {"../../outside/test_batch.bin", cifar_record(3, 4)}});
  unpack_cifar10(dir / "a.tar.gz", dir / "out");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir / "out")) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"batches.meta.txt", "data_batch_1.bin", "test_batch.bin"}));
  EXPECT_EQ(read_file(dir / "out/data_batch_1.bin"), cifar_record(1, 2));
  EXPECT_EQ(read_file(dir / "out/test_batch.bin"), cifar_record(3, 4));
}

TEST(UnpackCifar10, DamagedArchiveIsNamed) {
  const TempDir dir;
  // Incompressible bytes, so that half the file is half the contents.
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 200'000; ++i, x = x * 1664525 + 1013904223) {
    noise += static_cast<char>(x >> 24);
  }
  make_archive(dir / "a.tar.gz", {{"test_batch.bin", noise}});
  const auto bytes = read_file(dir / "a.tar.gz");
  write_text(dir / "cut.tar.gz", bytes.substr(0, bytes.size() / 2));
  write_text(dir / "text.tar.gz", "this is no archive, not even a short one");
  make_archive(dir / "other.tar.gz", {{"readme.html", "<html>"}});
  for (const char* name : {"cut.tar.gz", "text.tar.gz", "other.tar.gz", "missing.tar.gz"}) {
    const auto text =
        error_of(ErrorCode::kCorrupt, [&] { unpack_cifar10(dir / name, dir.path()); });
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
  EXPECT_FALSE(fs::exists(dir / "test_batch.bin"));
}

}  // namespace
}  // namespace lockstep
