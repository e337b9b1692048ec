#include "lockstep/base/help_text.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace lockstep::inline internal {
namespace {

/// A longer left column has a line of its own.
constexpr size_t kMaxLeft = 32;
constexpr size_t kGap = 2;

/// The words of `text`, after `start` on the first line and `indent` spaces on the others.
std::string paragraph(std::string start, const std::string& text, size_t indent) {
  std::string page;
  std::string line = std::move(start);
  bool fresh = true;
  std::istringstream words(text);
  for (std::string word; words >> word; fresh = false) {
    if (!fresh && line.size() + 1 + word.size() > kHelpColumns) {
      page += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
  }
  return page + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string paragraphs(const std::string& text) {
  std::string page;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) page += paragraph("", line, 0);
  return page;
}

bool has_letter(const HelpRow& row) {
  return row.left.size() > 1 && row.left[0] == '-' && row.left[1] != '-';
}

/// Aligns the long names of options with and without a letter.
std::string aligned(const HelpRow& row, bool letters) {
  return letters && row.left.rfind("--", 0) == 0 ? "    " + row.left : row.left;
}

std::string row_text(const std::string& left, const std::string& text, size_t width) {
  const size_t column = 2 + width + kGap;
  std::string start = "  " + left;
  if (text.empty()) return start + "\n";
  if (left.size() > width) return start + "\n" + paragraph(std::string(column, ' '), text, column);
  start.resize(column, ' ');
  return paragraph(std::move(start), text, column);
}

std::string usage_text(const std::vector<HelpRow>& usage) {
  constexpr std::string_view kUsage = "usage: ";
  size_t width = 0;
  for (const HelpRow& row : usage) width = std::max(width, row.left.size());
  std::string page;
  for (const HelpRow& row : usage) {
    std::string start = page.empty() ? std::string(kUsage) : std::string(kUsage.size(), ' ');
    start += row.left;
    const size_t column = kUsage.size() + width + 3;
    if (!row.text.empty()) start.resize(column, ' ');
    page += paragraph(std::move(start), row.text, column);
  }
  return page;
}

}  // namespace

std::string help_text(const HelpPage& page) {
  bool letters = false;
  for (const HelpGroup& group : page.groups) {
    letters = letters || std::any_of(group.rows.begin(), group.rows.end(), has_letter);
  }
  size_t width = 0;
  for (const HelpGroup& group : page.groups) {
    for (const HelpRow& row : group.rows) {
      const size_t left = aligned(row, letters).size();
      if (left <= kMaxLeft) width = std::max(width, left);
    }
  }
  std::string text = usage_text(page.usage);
  if (!page.about.empty()) text += "\n" + paragraphs(page.about);
  for (const HelpGroup& group : page.groups) {
    text += "\n" + (group.title.empty() ? "" : group.title + ":\n");
    for (const HelpRow& row : group.rows) text += row_text(aligned(row, letters), row.text, width);
  }
  if (!page.notes.empty()) text += "\n" + paragraphs(page.notes);
  return text;
}

int print_help(const HelpPage& page) {
  std::fputs(help_text(page).c_str(), stdout);
  return 0;
}

}  // namespace lockstep::inline internal
