#include "lockstep/launch/agent/line_splitter.h"

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

}  // namespace

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    if (bytes.front() == '\n') {
      lines.push_back(finish());
      bytes.remove_prefix(1);
      continue;
    }
    if (partial_.size() == max_bytes_) lines.push_back(finish());
    const size_t take = std::min({bytes.find('\n'), bytes.size(), max_bytes_ - partial_.size()});
    partial_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  return lines;
}

std::string LineSplitter::finish() {
  return shown(std::exchange(partial_, {}));
}

}  // namespace lockstep
