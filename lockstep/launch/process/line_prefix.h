#pragma once
// What stands before a worker's line on the console.

#include <string>
#include <vector>

namespace lockstep {

/// Pure: what the prefixes of one node's ranks look like.
struct PrefixStyle {
  int first_rank = 0;  ///< Of this node.
  int world_size = 1;
  std::string host;       ///< Empty: not shown (one node).
  size_t host_width = 0;  ///< Of the longest host's name.
  std::string role;       ///< For the template.
  std::string pattern;    ///< TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE; empty: "[host:rank] ".
  bool color = false;
  bool none = false;  ///< Lines are shown as they are.
};

/// "[3] ", "[hosta:3] ", "[0-31] ", "[0,2,4-7] ": as wide as the widest of single ranks.
/// local_ranks: ascending.
std::string line_prefix(const PrefixStyle& style, const std::vector<int>& local_ranks);

/// "0,2,4-7": ascending numbers, runs of three and more joined.
std::string compact_list(const std::vector<int>& numbers);

/// The beginning of `text` that fits into so many columns; a letter takes one, a terminal's control
/// sequence none.
std::string fitting(const std::string& text, int columns);

/// May prefixes on this stream have colour? Where it is a terminal that knows them, and NO_COLOR is
/// not set.
bool wants_color(bool terminal, const char* no_color, const char* term);

}  // namespace lockstep
