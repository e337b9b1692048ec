// The answers of a process manager, and rank 0's bootstrap record: any line is parsed, or is
// refused as corrupt.
#include <cstdint>
#include <string>

#include "lockstep/error.h"
#include "lockstep/world/bootstrap/meet.h"
#include "lockstep/world/bootstrap/pmi_wire.h"

namespace {

template <class Parse>
void judge_line(Parse parse) {
  try {
    parse();
  } catch (const lockstep::Error& error) {
    if (error.code() != lockstep::ErrorCode::kCorrupt) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  judge_line([&] {
    if (!lockstep::parse_pmi_line(line).contains("cmd")) __builtin_trap();
  });
  judge_line([&] {
    for (const auto& endpoint : lockstep::parse_bootstrap_record(line).endpoints)
      if (endpoint.host.empty() || endpoint.port <= 0) __builtin_trap();
  });
  return 0;
}
