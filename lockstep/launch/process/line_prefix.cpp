#include "lockstep/launch/process/line_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

/// Readable on dark and on light backgrounds: cyan, yellow, green, magenta, blue, and their bright
/// variants.
constexpr int kColors[] = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94};

void replace_all(std::string* text, std::string_view name, const std::string& value) {
  for (size_t at = text->find(name); at != std::string::npos; at = text->find(name, at)) {
    text->replace(at, name.size(), value);
    at += value.size();
  }
}

std::string filled_pattern(const PrefixStyle& style, const std::vector<int>& local_ranks,
                           const std::vector<int>& ranks) {
  std::string text = style.pattern;
  replace_all(&text, "${role_name}", style.role);
  replace_all(&text, "${local_rank}", compact_list(local_ranks));
  replace_all(&text, "${rank}", compact_list(ranks));
  return text;
}

}  // namespace

std::string compact_list(const std::vector<int>& numbers) {
  return runs_of(numbers, ",", 3);
}

std::string line_prefix(const PrefixStyle& style, const std::vector<int>& local_ranks) {
  if (style.none) return "";
  std::vector<int> ranks = local_ranks;
  for (int& rank : ranks) rank += style.first_rank;
  std::string text;
  size_t width = 0;
  if (!style.pattern.empty()) {
    text = filled_pattern(style, local_ranks, ranks);
    width = text.size();
  } else {
    const std::string host = style.host.empty() ? "" : style.host + ":";
    text = fmt::format("[{}{}]", host, compact_list(ranks));
    const size_t host_width = style.host.empty() ? 0 : style.host_width + 1;
    width = fmt::format("[{}]", style.world_size - 1).size() + host_width;
    text += ' ';
    ++width;
  }
  const std::string padding(width - std::min(width, text.size()), ' ');
  if (!style.color) return text + padding;
  const int color = ranks.size() > 1 ? 1  // bold: a line of several ranks
                                     : kColors[static_cast<size_t>(ranks[0]) % std::size(kColors)];
  return fmt::format("\x1b[{}m{}\x1b[0m{}", color, text, padding);
}

std::string fitting(const std::string& text, int columns) {
  int used = 0;
  bool in_sequence = false;  // "\x1b[31m", "\x1b[K"
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x1b) {
      in_sequence = true;
    } else if (in_sequence) {
      if (byte >= 0x40 && byte <= 0x7e && byte != '[') in_sequence = false;
    } else if ((byte & 0xc0) != 0x80) {  // a character begins
      if (used == columns) return text.substr(0, i) + "\x1b[0m";
      ++used;
    }
  }
  return text;
}

bool wants_color(bool terminal, const char* no_color, const char* term) {
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
  return terminal && !refused && !dumb;
}

}  // namespace lockstep::inline internal
