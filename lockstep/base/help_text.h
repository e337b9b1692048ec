#pragma once
// The text of --help: the same layout for every verb.

#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Two columns of a help page: syntax and description.
struct HelpRow {
  std::string left;  ///< "-f, --follow", "--rank R,R"; a page without letters aligns them all.
  std::string text;  ///< One paragraph, wrapped at the width of the page.
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

}  // namespace lockstep::inline internal
