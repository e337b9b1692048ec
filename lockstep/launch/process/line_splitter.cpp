#include "lockstep/launch/process/line_splitter.h"

#include <algorithm>
#include <utility>

namespace lockstep::inline internal {
namespace {

/// The text that a terminal finally shows for `line`.
std::string shown(std::string line) {
  while (!line.empty() && line.back() == '\r') line.pop_back();
  const size_t back = line.rfind('\r');
  return back == std::string::npos ? line : line.substr(back + 1);
}

/// A bar may be written for days; earlier states of it are useless.
void forget_earlier_states(std::string* line) {
  size_t end = line->size();
  while (end > 0 && (*line)[end - 1] == '\r') --end;
  const size_t back = end == 0 ? std::string::npos : line->rfind('\r', end - 1);
  if (back != std::string::npos) line->erase(0, back);
}

constexpr size_t kMaxBytes = 32 << 10;

}  // namespace

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    if (bytes.front() == '\n') {
      lines.push_back(finish());
      bytes.remove_prefix(1);
      continue;
    }
    if (partial_.size() == max_bytes_) lines.push_back(finish().append(cut_mark_));
    const size_t take = std::min({bytes.find('\n'), bytes.size(), max_bytes_ - partial_.size()});
    partial_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  if (is_bar()) forget_earlier_states(&partial_);
  return lines;
}

std::string LineSplitter::unfinished() const {
  constexpr size_t kSeen = 4096;  // a longer line is neither a question nor a bar
  return partial_.size() > kSeen ? "" : shown(partial_);
}

std::string LineSplitter::finish() {
  return shown(std::exchange(partial_, {}));
}

void RecentText::add(std::string_view text) {
  text_ += text.substr(text.size() - std::min(text.size(), kMaxBytes));
  if (text_.size() > 2 * kMaxBytes) text_.erase(0, text_.size() - kMaxBytes);
}

/// End of the first line from `at` on that is `line`, possibly after a prefix and a space.
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

}  // namespace lockstep::inline internal
