// What another process put into shared memory must be judged without a crash, whatever it is.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lockstep/comm/op_header.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  OpHeader headers[2];
  if (size < sizeof headers) return 0;
  std::memcpy(headers, data, sizeof headers);
  for (const auto& header : headers) {
    require(!describe(header).empty());
    if (malformed(header)) continue;
    require(header.count >= 0 && header.sequence > 0 && size_of(header.dtype) > 0);
    require(!mismatch(header, "rank 0", header, "rank 1"));
  }
  const bool equal = std::memcmp(&headers[0], &headers[1], sizeof(OpHeader)) == 0;
  require(mismatch(headers[0], "rank 0", headers[1], "rank 1").has_value() != equal);
  return 0;
}
