#pragma once
// What --help prints: the same look for every verb.

#include <string>
#include <vector>

namespace lockstep {

/// Two columns of a help page: how it is written, and what it does.
struct HelpRow {
  std::string left;  ///< "-f, --follow", "--rank R,R"; a page without letters aligns them all.
  std::string text;  ///< One paragraph, broken where the page ends.
};

struct HelpGroup {
  std::string title;  ///< Empty: none is shown.
  std::vector<HelpRow> rows;
};

struct HelpPage {
  std::vector<HelpRow> usage;  ///< Without the word "usage"; the text may be empty.
  std::string about;           ///< Paragraphs; "\n" ends one.
  std::vector<HelpGroup> groups;
  std::string notes;  ///< As `about`, below the options.
};

constexpr size_t kHelpColumns = 100;

/// The page, no line longer than kHelpColumns unless a single word is.
std::string help_text(const HelpPage& page);

/// Writes it to stdout; returns the exit status, 0.
int print_help(const HelpPage& page);

}  // namespace lockstep
