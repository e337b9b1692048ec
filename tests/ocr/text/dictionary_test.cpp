#include "lockstep/ocr/text/dictionary.h"

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

TEST(Dictionary, BuiltInHasThirtySixCharactersAndABlank) {
  const Dictionary dictionary(CharacterOptions{});
  EXPECT_EQ(dictionary.num_classes(), 37);
  EXPECT_EQ(dictionary.blank(), 36);
  EXPECT_TRUE(dictionary.lower());
  EXPECT_EQ(dictionary.find("0"), 0);
  EXPECT_EQ(dictionary.find("z"), 35);
  EXPECT_EQ(dictionary.find("A"), -1);
  EXPECT_EQ(dictionary.find(" "), -1);
  EXPECT_EQ(dictionary.character(10), "a");
  EXPECT_EQ(dictionary.character(36), "");
}

TEST(Dictionary, CutsOffLineEndsAlone) {
  const auto dictionary = Dictionary::parse("a\r\n\xE3\x80\x80\n \n\xC3\xA9", "d.txt",
                                            {.character_dict_path = "d.txt"});
  EXPECT_EQ(dictionary.num_classes(), 5);
  EXPECT_EQ(dictionary.find("a"), 0);
  EXPECT_EQ(dictionary.find("\xE3\x80\x80"), 1);
  EXPECT_EQ(dictionary.find(" "), 2);
  EXPECT_EQ(dictionary.find("\xC3\xA9"), 3);
  EXPECT_FALSE(dictionary.lower());
}

TEST(Dictionary, AByteOrderMarkIsNoCharacter) {
  const auto dictionary = Dictionary::parse(
      "\xEF\xBB\xBF"
      "a\nb\n",
      "d.txt", {.character_dict_path = "d.txt"});
  EXPECT_EQ(dictionary.num_classes(), 3);
  EXPECT_EQ(dictionary.find("a"), 0);
}

TEST(Dictionary, ASpaceIsAddedOnce) {
  const CharacterOptions options{.character_dict_path = "d.txt", .use_space_char = true};
  const auto added = Dictionary::parse("a\nb\n", "d.txt", options);
  EXPECT_EQ(added.num_classes(), 4);
  EXPECT_EQ(added.find(" "), 2);
  const auto present = Dictionary::parse("a\n \nb\n", "d.txt", options);
  EXPECT_EQ(present.num_classes(), 4);
  EXPECT_EQ(present.find(" "), 1);
}

TEST(Dictionary, ABlankInFrontMovesAllOthers) {
  const Dictionary dictionary({.use_space_char = true, .blank_at_last = false});
  EXPECT_EQ(dictionary.blank(), 0);
  EXPECT_EQ(dictionary.find("0"), 1);
  EXPECT_EQ(dictionary.find(" "), 37);
  EXPECT_EQ(dictionary.num_classes(), 38);
  EXPECT_EQ(dictionary.character(0), "");
  EXPECT_EQ(dictionary.character(37), " ");
}

TEST(Dictionary, ReadsAFile) {
  const testing::TempDir dir;
  testing::write_text(dir / "d.txt", "x\ny\n");
  const Dictionary dictionary({.character_dict_path = dir / "d.txt", .lower = true});
  EXPECT_EQ(dictionary.num_classes(), 3);
  EXPECT_TRUE(dictionary.lower());
  error_of(ErrorCode::kNotFound, [&] { Dictionary({.character_dict_path = dir / "other.txt"}); });
}

TEST(Dictionary, FaultsNameTheLine) {
  const CharacterOptions options{.character_dict_path = "d.txt"};
  EXPECT_EQ(
      error_of(ErrorCode::kCorrupt, [&] { Dictionary::parse("a\nb\na\n", "d.txt", options); }),
      "d.txt:3: 'a' stands on line 1 already; a character has one class");
  EXPECT_EQ(
      error_of(ErrorCode::kCorrupt, [&] { Dictionary::parse("a\n\xFF\n", "d.txt", options); }),
      "d.txt:2: not UTF-8");
  error_of(ErrorCode::kCorrupt, [&] { Dictionary::parse("", "d.txt", options); });
}

}  // namespace
}  // namespace lockstep::ocr
