#pragma once
// The prefix of a worker's line on the console.

#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Pure: format of the prefixes of one host's ranks.
struct PrefixStyle {
  int first_rank = 0;  ///< Of this host.
  int world_size = 1;
  std::string host;       ///< Empty: not shown (one host).
  size_t host_width = 0;  ///< Length of the longest host name.
  std::string role;       ///< For the template.
  std::string pattern;    ///< TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE; empty: "[host:rank] ".
  bool color = false;
  bool none = false;  ///< No prefix at all.
};

/// "[3] ", "[hosta:3] ", "[0-31] ", "[0,2,4-7] ": padded to the widest prefix of a single rank.
/// local_ranks: ascending.
std::string line_prefix(const PrefixStyle& style, const std::vector<int>& local_ranks);

/// "0,2,4-7": ascending numbers, runs of three and more joined.
std::string compact_list(const std::vector<int>& numbers);

/// The beginning of `text` that fits into `columns`. A character takes one column, a control
/// sequence none.
std::string fitting(const std::string& text, int columns);

/// Whether prefixes on this stream may have colour: on a terminal with colours, unless NO_COLOR is
/// set.
bool wants_color(bool terminal, const char* no_color, const char* term);

}  // namespace lockstep::inline internal
