#include "lockstep/launch/process/recent_text.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr size_t kMaxBytes = 32 << 10;

}  // namespace

void RecentText::add(std::string_view text) {
  text_ += text.substr(text.size() - std::min(text.size(), kMaxBytes));
  if (text_.size() > 2 * kMaxBytes) text_.erase(0, text_.size() - kMaxBytes);
}

/// Where a line from `at` on ends that is `line`, maybe after a prefix and a space.
size_t RecentText::end_of_shown(const std::string& line, size_t at) const {
  for (at = text_.find(line, at); at != std::string::npos; at = text_.find(line, at + 1)) {
    const size_t end = at + line.size();
    const bool begins = at == 0 || text_[at - 1] == '\n' || text_[at - 1] == ' ';
    if (begins && (end == text_.size() || text_[end] == '\n')) return end;
  }
  return at;
}

bool RecentText::has(const std::vector<std::string>& lines) const {
  size_t at = text_.size();
  for (int count = 0; count <= kLines && at > 0; ++count) {
    const size_t end = text_.rfind('\n', at - 1);
    at = end == std::string::npos ? 0 : end;
  }
  bool says_something = false;
  for (const std::string& line : lines) {
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    at = end_of_shown(line, at);
    if (at == std::string::npos) return false;
    says_something = true;
  }
  return says_something;
}

}  // namespace lockstep
