// What an etcd server, or what is there instead, may send: the first byte chooses the call.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/store/etcd/api.h"
#include "lockstep/store/etcd/base64.h"

namespace {

using namespace lockstep;

void parse(uint8_t call, std::string_view body) {
  switch (call % 7) {
    case 0:
      etcd::parse_range(body);
      break;
    case 1:
      etcd::parse_transaction(body);
      break;
    case 2:
      etcd::parse_watch(body);
      break;
    case 3:
      etcd::parse_lease_ttl(body);
      break;
    case 4:
      etcd::parse_deleted(body);
      break;
    case 5:
      etcd::parse_refusal(body);
      break;
    default:
      // What is accepted is the one text for its bytes.
      if (encode_base64(decode_base64(body)) != body) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    parse(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {
    // Refused with a reason: what must happen to most inputs.
  }
  return 0;
}
