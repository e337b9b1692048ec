// Any bytes as a rank table. Reading and checking never throw; a table without a fault in form is
// written to a text that reads back equal, and has as many places as ranks when they are sound.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/launch/rank_table/check.h"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto faults = check_rank_table(text);
  const auto reading = read_rank_table(text);
  if (any_error(reading.faults)) {
    require(any_error(faults));
    return 0;
  }
  const std::string written = format_rank_table(reading.table);
  const auto again = read_rank_table(written);
  require(!any_error(again.faults));
  require(format_rank_table(again.table) == written);
  if (any_error(check_ranks(reading.table))) return 0;
  for (int rank = 0; rank < num_ranks(reading.table); ++rank)
    require(find_rank(reading.table, rank).has_value());
  return 0;
}
