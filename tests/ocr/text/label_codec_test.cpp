#include "lockstep/ocr/text/dictionary.h"

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

std::vector<int32_t> sequence(const EncodedText& text) {
  return text.text_seq;
}

TEST(EncodeText, PadsWithTheBlank) {
  const Dictionary dictionary(CharacterOptions{});
  const auto text = encode_text(dictionary, "aB9", 5);
  EXPECT_EQ(sequence(text), (std::vector<int32_t>{10, 11, 9, 36, 36}));
  EXPECT_EQ(text.length, 3);
  EXPECT_EQ(text.remark, "");
}

TEST(EncodeText, DropsWhatTheDictionaryLacks) {
  const Dictionary dictionary(CharacterOptions{});
  const auto some = encode_text(dictionary, "a-\xC3\xA9z", 4);
  EXPECT_EQ(sequence(some), (std::vector<int32_t>{10, 35, 36, 36}));
  EXPECT_EQ(some.length, 2);
  EXPECT_EQ(some.remark, "'a-\xC3\xA9z': not in the dictionary: '-\xC3\xA9'");
  const auto none = encode_text(dictionary, "--", 4);
  EXPECT_EQ(none.length, 0);
  EXPECT_EQ(sequence(none), std::vector<int32_t>(4, 36));
  EXPECT_NE(none.remark.find("nothing is left"), std::string::npos);
}

TEST(EncodeText, TooLongCountsInCharactersAndBecomesEmpty) {
  const auto dictionary = Dictionary::parse("\xC3\xA9\n", "d", {.character_dict_path = "d"});
  EXPECT_EQ(encode_text(dictionary, "\xC3\xA9\xC3\xA9", 2).length, 2);
  const auto text = encode_text(dictionary, "\xC3\xA9\xC3\xA9\xC3\xA9", 2);
  EXPECT_EQ(text.length, 0);
  EXPECT_EQ(sequence(text), (std::vector<int32_t>{1, 1}));
  EXPECT_NE(text.remark.find("3 characters"), std::string::npos);
}

TEST(EncodeText, EmptyAndBroken) {
  const Dictionary dictionary(CharacterOptions{});
  EXPECT_EQ(encode_text(dictionary, "", 3).length, 0);
  error_of(ErrorCode::kCorrupt, [&] { encode_text(dictionary, "a\xC3", 3); });
}

TEST(CtcLength, AnEqualNeighbourCountsTwice) {
  EXPECT_EQ(ctc_length(""), 0);
  EXPECT_EQ(ctc_length("a"), 1);
  EXPECT_EQ(ctc_length("aa"), 3);
  EXPECT_EQ(ctc_length("aab"), 4);
  EXPECT_EQ(ctc_length("\xC3\xA9\xC3\xA9"), 3);
}

}  // namespace
}  // namespace lockstep::ocr
