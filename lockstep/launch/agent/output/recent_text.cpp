#include "lockstep/launch/agent/output/recent_text.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr size_t kMaxBytes = 32 << 10;

}  // namespace

void RecentText::add(std::string_view text) {
  text_ += text.substr(text.size() - std::min(text.size(), kMaxBytes));
  if (text_.size() > 2 * kMaxBytes) text_.erase(0, text_.size() - kMaxBytes);
}

bool RecentText::has(const std::vector<std::string>& lines) const {
  size_t at = text_.size();
  for (int count = 0; count <= kLines && at > 0; ++count) {
    const size_t end = text_.rfind('\n', at - 1);
    at = end == std::string::npos ? 0 : end;
  }
  for (const std::string& line : lines) {
    at = text_.find(line, at);
    if (at == std::string::npos) return false;
    at += line.size();
  }
  return true;
}

}  // namespace lockstep
