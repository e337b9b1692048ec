#include "lockstep/observe/confusion.h"

#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

size_t occurrences(const std::string& text, const std::string& part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

const Confusion kPets = {3, {8, 1, 0, 2, 5, 0, 0, 0, 0}};

TEST(Confusion, TableHasARowForEachTrueClass) {
  EXPECT_EQ(confusion_csv(kPets, {"cat", "dog, big", "a \"hen\""}),
            "true class,cat,\"dog, big\",\"a \"\"hen\"\"\"\r\n"
            "cat,8,1,0\r\n"
            "\"dog, big\",2,5,0\r\n"
            "\"a \"\"hen\"\"\",0,0,0\r\n");
}

TEST(Confusion, PictureHasNamesCountsAndShades) {
  const auto svg = confusion_svg("net <1>", kPets, {"cat", "dog & co", "hen\xff"});
  EXPECT_EQ(occurrences(svg, ">net &lt;1&gt;<"), 1U) << svg;
  EXPECT_EQ(occurrences(svg, ">dog &amp; co<"), 2U);  // at both axes
  EXPECT_EQ(occurrences(svg, ">hen?<"), 2U);          // bytes that are no UTF-8
  EXPECT_EQ(occurrences(svg, ">8<"), 1U);
  EXPECT_EQ(occurrences(svg, ">0<"), 0U);                      // empty squares are left out
  EXPECT_EQ(occurrences(svg, "fill=\"#1c82bb\""), 1U) << svg;  // 8 of 9
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

TEST(Confusion, ManyClassesHaveNoNamesAndVeryManyShareSquares) {
  const auto diagonal = [](int64_t classes) {
    Confusion confusion{classes, std::vector<int64_t>(static_cast<size_t>(classes * classes))};
    for (int64_t i = 0; i < classes; ++i) {
      confusion.counts[static_cast<size_t>(i * classes + i)] = 1;
    }
    return confusion;
  };
  const auto names = [](int64_t classes) {
    return std::vector<std::string>(static_cast<size_t>(classes), "name");
  };
  EXPECT_EQ(occurrences(confusion_svg("", diagonal(50), names(50)), ">name<"), 100U);
  const auto many = confusion_svg("", diagonal(51), names(51));
  EXPECT_EQ(occurrences(many, ">name<"), 0U);
  EXPECT_EQ(occurrences(many, "<rect"), 51U + 2);  // with the ground and the frame
  EXPECT_EQ(occurrences(confusion_svg("", diagonal(1000), names(1000)), "<rect"), 200U + 2);
}

TEST(Confusion, FilesNameClassesByNumbersWhereNamesAreMissing) {
  const TempFolder dir;
  write_confusion(dir.path(), "confusion", "net", kPets, {"cat"});
  EXPECT_TRUE(read_file(dir / "confusion.csv").starts_with("true class,cat,1,2\r\ncat,8,"));
  EXPECT_TRUE(std::filesystem::exists(dir / "confusion.svg"));
  write_confusion(dir.path(), "none", "net", {2, {0, 0, 0, 0}}, {});
  EXPECT_FALSE(std::filesystem::exists(dir / "none.csv"));
}

}  // namespace
}  // namespace lockstep
