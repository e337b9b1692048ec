// Lists of hosts come from a batch system's variables: whatever they are, they are expanded within
// bounds or refused as the user's fault.
#include <cstdint>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/world/detect/host_list.h"

namespace {

template <class Parse>
void judge_list(Parse parse) {
  try {
    parse();
  } catch (const lockstep::Error& error) {
    if (error.code() != lockstep::ErrorCode::kInvalidArgument) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  judge_list([&] {
    size_t bytes = 0;
    for (const auto& host : lockstep::expand_host_list(text)) {
      if (host.empty()) __builtin_trap();
      bytes += host.size();
    }
    if (bytes > lockstep::kMaxHostListBytes) __builtin_trap();
  });
  judge_list([&] {
    const auto tasks = lockstep::parse_tasks_per_node(text);
    if (tasks.empty() || tasks.size() > 65536) __builtin_trap();
  });
  return 0;
}
