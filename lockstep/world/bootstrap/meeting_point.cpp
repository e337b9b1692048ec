#include "lockstep/world/bootstrap/meeting_point.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"

namespace lockstep {
namespace {

// '=' separates names from values in PMI's lines, and ',' and ';' are taken by some managers.
constexpr const char* kBegin = "lockstep1";
constexpr const char* kTlsBegin = "lockstep1s";

}  // namespace

std::string to_line(const MeetingPoint& point) {
  std::string line = point.wire == Wire::kTls ? kTlsBegin : kBegin;
  line += "|" + point.secret;
  for (const Endpoint& endpoint : point.endpoints) {
    const auto text = "|" + to_string(endpoint);
    if (line.size() + text.size() <= kMaxExchangeBytes) line += text;
  }
  return line;
}

MeetingPoint parse_meeting_point(const std::string& line) {
  const auto corrupt = [] {
    return Error(ErrorCode::kCorrupt,
                 "rank 0's meeting point is not understood; does it run the "
                 "same build?");
  };
  const auto parts = split(line, '|');
  if (line.size() > kMaxExchangeBytes || parts.size() < 3) throw corrupt();
  MeetingPoint point;
  if (parts[0] == kTlsBegin)
    point.wire = Wire::kTls;
  else if (parts[0] != kBegin)
    throw corrupt();
  point.secret = parts[1];
  for (size_t i = 2; i < parts.size(); ++i) {
    try {
      point.endpoints.push_back(parse_endpoint(parts[i], 0));
    } catch (const Error&) {
      throw corrupt();
    }
    if (point.endpoints.back().port == 0) throw corrupt();
  }
  return point;
}

}  // namespace lockstep
