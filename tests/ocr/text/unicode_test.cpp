#include "lockstep/ocr/text/unicode.h"

#include <gtest/gtest.h>

namespace lockstep::ocr {
namespace {

TEST(Unicode, TellsUtf8FromOtherBytes) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"));
  EXPECT_FALSE(is_utf8("\xC3"));
  EXPECT_FALSE(is_utf8("\xC0\x80"));      // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));  // half of a surrogate pair
  EXPECT_FALSE(is_utf8({"a\0b", 3}));
}

TEST(Unicode, SplitsIntoCharacters) {
  const auto all = characters("a\xC3\xA9\xE4\xB8\xAD");
  EXPECT_EQ(all, (std::vector<std::string_view>{"a", "\xC3\xA9", "\xE4\xB8\xAD"}));
  EXPECT_EQ(count_characters("a\xC3\xA9\xE4\xB8\xAD"), 3);
  EXPECT_TRUE(characters("").empty());
}

TEST(Unicode, LowerCaseBeyondAscii) {
  EXPECT_EQ(to_lower("AbZ[1"), "abz[1");
  EXPECT_EQ(to_lower("\xC3\x89\xCE\xA9\xD0\x94"), "\xC3\xA9\xCF\x89\xD0\xB4");  // É Ω Д
  EXPECT_EQ(to_lower("I\xE4\xB8\xAD"), "i\xE4\xB8\xAD");
}

TEST(Unicode, DecomposesForComparison) {
  EXPECT_EQ(to_nfkd("\xEF\xBC\xA1\xC3\xA9"), "Ae\xCC\x81");  // full-width A, é
  EXPECT_EQ(to_nfkd("plain"), "plain");
}

TEST(ForMessage, IsShortAndMovesNoCursor) {
  EXPECT_EQ(for_message("Gr\xC3\xBC\xC3\x9F Gott"), "Gr\xC3\xBC\xC3\x9F Gott");
  EXPECT_EQ(for_message("a\x1B[31m\n\x7F\xC2\x9B"
                        "b"),
            "a?[31m???b");
  std::string many;
  for (int i = 0; i < 61; ++i) many += "\xC3\xA9";
  EXPECT_EQ(for_message(many), many.substr(0, 120) + "...");
  EXPECT_EQ(for_message(many.substr(0, 120)), many.substr(0, 120));
  EXPECT_EQ(for_message(""), "");
}

}  // namespace
}  // namespace lockstep::ocr
