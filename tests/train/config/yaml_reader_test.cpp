#include "lockstep/train/config/yaml_reader.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep {
namespace {

std::string parse_error(const std::string& text, const YamlLimits& limits = {}) {
  try {
    parse_yaml(text, "a.yaml", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(YamlReader, KeepsPlaces) {
  const Node root = parse_yaml("a: 1\nb:\n  c: [x, 'y']\n", "a.yaml");
  EXPECT_EQ(to_string(root.entries.back().location), "a.yaml:2");
  const Node& list = *root.find("b")->find("c");
  EXPECT_EQ(to_string(list.location), "a.yaml:3");
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(root.find("c"), nullptr);
}

TEST(YamlReader, ResolvesAnchors) {
  const Node root = parse_yaml("common:\n  size: &size 32\n  m: &m {a: 1}\nx: *size\ny: *m", "a");
  EXPECT_EQ(root.find("x")->text, "32");
  EXPECT_EQ(root.find("y")->find("a")->text, "1");
}

TEST(YamlReader, MergesMappingsOwnKeysFirst) {
  const Node root = parse_yaml(
      "p: &p {a: 1, b: 2}\nq: &q {b: 3, c: 4}\n"
      "one: {<<: *p, b: 9}\nmany:\n  <<: [*q, *p]\n  d: 5\n",
      "a");
  EXPECT_TRUE(same_values(*root.find("one"), parse_yaml("{b: 9, a: 1}", "a")));
  EXPECT_TRUE(same_values(*root.find("many"), parse_yaml("{d: 5, b: 3, c: 4, a: 1}", "a")));
}

TEST(YamlReader, RefusesWithTheLine) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3: the key 'a' stands twice in this mapping");
  EXPECT_EQ(parse_error("a: 1\n[x]: 2\n"), "a.yaml:2: a key must be a plain word");
  EXPECT_EQ(parse_error("a: 1\n<<: 3\n"),
            "a.yaml:2: '<<' must name a mapping or a list of mappings");
  EXPECT_EQ(parse_error("a: &a [*a]\n"), "a.yaml:1: an alias stands inside its own anchor");
  EXPECT_EQ(parse_error("a: !!python/name:os.system x\n").find("a.yaml:1: the tag '"), 0u);
  EXPECT_EQ(parse_error("a: 1\n b: [\n").find("a.yaml:2: not YAML: "), 0u);
  EXPECT_EQ(parse_error("a: *nobody\n").find("a.yaml:1: not YAML: "), 0u);
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"), "a.yaml: holds more than one document");
}

TEST(YamlReader, RefusesWhatWouldBeMisread) {
  EXPECT_EQ(parse_error("a: 1\nb: g\xE4rten\n"), "a.yaml:2: not UTF-8");
  EXPECT_EQ(parse_error("\xE4: 1"), "a.yaml:1: not UTF-8");
  EXPECT_EQ(parse_error(std::string("a: 1\n\nb: \0", 10)), "a.yaml:3: a zero byte: no text");
  EXPECT_EQ(parse_error("a:\n  b: 1\n\tc: 2\n"),
            "a.yaml:3: a tab in the indentation, where YAML takes blanks alone");
  EXPECT_EQ(parse_yaml("a: g\xC3\xA4rten\t# a tab\n", "a").find("a")->text, "g\xC3\xA4rten");
}

TEST(YamlReader, RefusesCharactersThatAreNone) {
  EXPECT_EQ(parse_error(std::string("\0\0\xFE\xFF"
                                    "asc_",
                                    8)),
            "a.yaml:1: a character that no text holds");
  EXPECT_EQ(parse_error("a: 1\nb: \"\\0\"\n"), "a.yaml:2: a character that no text holds");
}

TEST(YamlReader, ReadsUtf16ThatSaysSo) {
  EXPECT_EQ(parse_yaml(std::string_view("\xFF\xFE"
                                        "a\0:\0 \0"
                                        "1\0",
                                        10),
                       "a")
                .find("a")
                ->text,
            "1");
}

TEST(YamlReader, StaysWithinBounds) {
  EXPECT_EQ(parse_error(std::string(100000, '[')), "a.yaml:1: nested deeper than 64 levels");
  EXPECT_EQ(parse_error("a: 1\n" + std::string(201, 'b') + ": 2"),
            "a.yaml:2: a key longer than 200 bytes");
  EXPECT_EQ(parse_error("a: 12345", {.text_bytes = 5}), "a.yaml: longer than 5 bytes");
  std::string bomb = "a: &x0 [lol, lol]\n";
  for (int i = 1; i < 40; ++i) {
    const auto name = "*x" + std::to_string(i - 1);
    bomb +=
        "k" + std::to_string(i) + ": &x" + std::to_string(i) + " [" + name + ", " + name + "]\n";
  }
  EXPECT_NE(parse_error(bomb).find("the document grows beyond"), std::string::npos);
}

TEST(YamlReader, EmptyTextIsNull) {
  EXPECT_EQ(parse_yaml("", "a").kind, Node::Kind::kNull);
  EXPECT_EQ(parse_yaml("# only a comment\n", "a").kind, Node::Kind::kNull);
}

TEST(YamlWriter, ReadsBackToTheSame) {
  const std::string text =
      "a: 1.0e-6\nb: 'yes'\nc: [1, [2, x y], null, 'a, b']\nd:\n  - Crop:\n      size: 32\n"
      "  - Flip:\n  - [{z: 1}]\ne: \"tab\\tquote\\\"line\\nend\"\nf: {}\n'odd: key': -5\n'null': "
      "6\ng: [-, "
      ".5]\n";
  const Node root = parse_yaml(text.substr(0, text.find("g:")), "a");
  const Node again = parse_yaml(write_yaml(root), "b");
  EXPECT_TRUE(same_values(root, again)) << write_yaml(root);
  EXPECT_TRUE(again.find("b")->quoted);
  EXPECT_FALSE(again.find("a")->quoted);
}

TEST(YamlWriter, NumbersAreFloatsInYaml11) {
  EXPECT_EQ(yaml_number(0.1), "0.1");
  EXPECT_EQ(yaml_number(3), "3.0");
  EXPECT_EQ(yaml_number(1e-6), "1.0e-06");
  EXPECT_EQ(yaml_number(1.5e-7), "1.5e-07");
}

}  // namespace
}  // namespace lockstep
