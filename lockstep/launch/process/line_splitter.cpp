#include "lockstep/launch/process/line_splitter.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// What a terminal shows of `line` in the end.
std::string shown(std::string line) {
  while (!line.empty() && line.back() == '\r') line.pop_back();
  const size_t back = line.rfind('\r');
  return back == std::string::npos ? line : line.substr(back + 1);
}

/// A bar may be written for days: what it was before is of no use.
void forget_earlier_states(std::string* line) {
  size_t end = line->size();
  while (end > 0 && (*line)[end - 1] == '\r') --end;
  const size_t back = end == 0 ? std::string::npos : line->rfind('\r', end - 1);
  if (back != std::string::npos) line->erase(0, back);
}

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
  constexpr size_t kSeen = 4096;  // a longer one is no question and no bar
  return partial_.size() > kSeen ? "" : shown(partial_);
}

std::string LineSplitter::finish() {
  return shown(std::exchange(partial_, {}));
}

}  // namespace lockstep
