#include "lockstep/data/pictures/name_text.h"

#include <gtest/gtest.h>
#include <linux/magic.h>

#include <fstream>

#include "lockstep/data/usable_samples.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

/// The same text in memory and in a file.
class NameTexts : public ::testing::Test {
 protected:
  std::vector<std::shared_ptr<const NameText>> both(const std::string& bytes) const {
    std::ofstream(dir_ / "text", std::ios::binary) << bytes;
    return {std::make_shared<const NameText>(bytes), NameText::open(dir_ / "text", "text")};
  }
  TempFolder dir_;
};

TEST_F(NameTexts, AreReadInParts) {
  for (const auto& text : both(std::string("one\0\0three\0rest", 15))) {
    NameWindow window(*text);
    EXPECT_EQ(window.part(0), "one");
    EXPECT_EQ(window.part(4), "");
    EXPECT_EQ(window.part(5), "three");
    EXPECT_EQ(window.part(11), std::nullopt);
    EXPECT_EQ(window.part(16), std::nullopt);
    EXPECT_EQ(window.part(1'000'000), std::nullopt);
    EXPECT_EQ(window.part(1), "ne") << "backwards, too";
    EXPECT_EQ(window.at(11, 4), "rest");
    EXPECT_THROW(window.at(11, 6), DataChanged);
  }
}

TEST_F(NameTexts, OfManyBlocksHaveTheirNamesAcrossThem) {
  std::string bytes;
  for (int i = 0; i < 30'000; ++i) bytes += std::to_string(i) + std::string(1, '\0');
  for (const auto& text : both(bytes)) {
    NameWindow parts(*text), places(*text);
    uint64_t at = 0;
    for (int i = 0; i < 30'000; ++i) {
      const std::string name = std::to_string(i);
      ASSERT_EQ(parts.part(at), name);
      ASSERT_EQ(places.at(at, name.size()), name);
      at += name.size() + 1;
    }
    EXPECT_EQ(at, bytes.size());
  }
}

TEST_F(NameTexts, TakeLongPartsByTheirLengthAlone) {
  const std::string bytes(200'000, 'x');
  for (const auto& text : both(bytes)) {
    NameWindow window(*text);
    EXPECT_EQ(window.part(0), std::nullopt) << "no name is so long";
    EXPECT_EQ(window.at(1, 199'999), std::string_view(bytes).substr(1));
  }
}

TEST_F(NameTexts, AreInMemoryOrInAFile) {
  const auto texts = both(std::string(1'000, 'x'));
  EXPECT_TRUE(texts[0]->is_in_memory());
  EXPECT_FALSE(texts[1]->is_in_memory());
  EXPECT_EQ(NameText::open(dir_ / "none", "none"), nullptr);
  EXPECT_EQ(NameText::open(dir_.path(), "folder"), nullptr);
}

TEST(NameText, ReliesOnFilesOfLocalDisksAlone) {
  for (const int64_t kind : {EXT4_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC}) {
    EXPECT_TRUE(keeps_open_files(kind)) << kind;
  }
  for (const int64_t kind : {NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, V9FS_MAGIC, 0x65735546}) {  // FUSE
    EXPECT_FALSE(keeps_open_files(kind)) << kind;
  }
}

}  // namespace
}  // namespace lockstep
