#include "lockstep/comm/letters.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep {

void Letters::check(const GroupSpec& spec, int source, const Envelope& came,
                    const Envelope& wanted) {
  if (came.count == wanted.count && came.dtype == wanted.dtype) return;
  throw Error(ErrorCode::kMismatch, fmt::format("{} sent {} {}, {} called recv for {} {} (tag {})",
                                                spec.rank_name(source), came.count,
                                                to_string(came.dtype), spec.rank_name(spec.rank),
                                                wanted.count, to_string(wanted.dtype), came.tag));
}

}  // namespace lockstep
