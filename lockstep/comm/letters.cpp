#include "lockstep/comm/letters.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/comm/copy.h"
#include "lockstep/comm/native/tcp/pipes.h"

namespace lockstep {

std::string describe(const Envelope& envelope) {
  return fmt::format("{} {}, tag {}", envelope.count, to_string(envelope.dtype), envelope.tag);
}

bool Letters::take_kept(Source& from, const GroupSpec& spec, int source, const Envelope& wanted,
                        void* data) {
  const auto found =
      std::find_if(from.letters.begin(), from.letters.end(),
                   [&](const Letter& letter) { return letter.envelope.tag == wanted.tag; });
  if (found == from.letters.end()) return false;
  check(spec, source, found->envelope, wanted);
  copy_bytes(data, found->data.data(), wanted.bytes());
  from.bytes -= wanted.bytes();
  from.letters.erase(found);
  return true;
}

void Letters::check(const GroupSpec& spec, int source, const Envelope& came,
                    const Envelope& wanted) {
  if (came.count == wanted.count && came.dtype == wanted.dtype) return;
  throw Error(ErrorCode::kMismatch, fmt::format("{} sent {} {}, {} called recv for {} {} (tag {})",
                                                spec.rank_name(source), came.count,
                                                to_string(came.dtype), spec.rank_name(spec.rank),
                                                wanted.count, to_string(wanted.dtype), came.tag));
}

void Letters::check_room(const Source& from, const GroupSpec& spec, int source,
                         const Envelope& came) {
  if (came.bytes() <= tcp::kMaxEarlyBytes - from.bytes) return;
  throw Error(ErrorCode::kMismatch,
              fmt::format("{} sent {} first, and {} has no room to keep it: receive letters of "
                          "this size in the order in which they are sent",
                          spec.rank_name(source), describe(came), spec.rank_name(spec.rank)));
}

}  // namespace lockstep
