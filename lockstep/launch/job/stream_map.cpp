#include "lockstep/launch/job/stream_map.h"

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

Streams parse_streams(const std::string& text, const std::string& what) {
  const auto bits = parse_int(text, 0, 3, what + " (0 none, 1 stdout, 2 stderr, 3 both)");
  return {(bits & 1) != 0, (bits & 2) != 0};
}

}  // namespace

StreamMap StreamMap::parse(const std::string& text, const std::string& what) {
  StreamMap map;
  if (text.find(':') == std::string::npos) {
    map.all_ = parse_streams(text, what);
    return map;
  }
  for (const std::string& item : split(text, ',')) {
    const auto parts = split(item, ':');
    if (parts.size() != 2) {
      throw Error(ErrorCode::kInvalidArgument,
                  what + ": '" + item + "' is not LOCAL_RANK:0|1|2|3, as in 0:3,1:2");
    }
    const int rank = static_cast<int>(parse_int(parts[0], 0, 1 << 20, what + ", local rank"));
    if (!map.by_rank_.emplace(rank, parse_streams(parts[1], what)).second) {
      throw Error(ErrorCode::kInvalidArgument, what + ": local rank " + parts[0] + " twice");
    }
  }
  return map;
}

Streams StreamMap::of(int local_rank) const {
  if (by_rank_.empty()) return all_;
  const auto found = by_rank_.find(local_rank);
  return found == by_rank_.end() ? Streams{} : found->second;
}

bool StreamMap::any() const {
  return all_.any() || std::any_of(by_rank_.begin(), by_rank_.end(),
                                   [](const auto& entry) { return entry.second.any(); });
}

}  // namespace lockstep
