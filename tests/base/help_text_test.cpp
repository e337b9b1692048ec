#include "lockstep/base/help_text.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

TEST(HelpText, AlignsNamesAndTextsAndNamesGroups) {
  const HelpPage page{{{"lockstep logs [-f] [ID]", ""}},
                      "Shows lines.",
                      {{"Ranks", {{"--rank R,R", "of these only"}}},
                       {"Other", {{"-f, --follow", "go on"}, {"-h, --help", "print this"}}}},
                      "More is elsewhere."};
  EXPECT_EQ(help_text(page),
            "usage: lockstep logs [-f] [ID]\n"
            "\n"
            "Shows lines.\n"
            "\n"
            "Ranks:\n"
            "      --rank R,R  of these only\n"
            "\n"
            "Other:\n"
            "  -f, --follow    go on\n"
            "  -h, --help      print this\n"
            "\n"
            "More is elsewhere.\n");
}

TEST(HelpText, NoLineIsTooLongAndNoWordGetsLost) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += (i > 0 ? " word" : "word") + std::to_string(i);
  const std::string long_name = "--" + std::string(40, 'x');
  const HelpPage page{{{"lockstep a", words}, {"lockstep abc", "short"}},
                      words,
                      {{"", {{"--a N", words}, {long_name, words}}}},
                      words};
  const std::string text = help_text(page);
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), kHelpColumns) << line;
  for (const char* word : {"word0", "word99 ", "word199"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  // A name wider than its column has its own line; the text is in the column of all texts.
  EXPECT_NE(text.find("  " + long_name + "\n         word0 "), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
