// What agents and leaders write to the rendezvous store is read without a crash, whatever it is;
// what is taken for a message comes back as it was.
#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/leader.h"
#include "lockstep/launch/rendezvous/messages.h"

namespace {

template <class Read, class Write>
void judge(std::string_view text, size_t limit, const Read& from_json, const Write& write) {
  std::string written;
  try {
    written = write(from_json(text));
  } catch (const lockstep::Error& error) {
    if (error.code() != lockstep::ErrorCode::kCorrupt) __builtin_trap();
    return;
  }
  if (written.size() > limit) __builtin_trap();
  if (write(from_json(written)) != written) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto write = [](const auto& message) { return to_json(message); };
  judge(text, kMaxJoinRequestBytes, join_request_from_json, write);
  judge(text, kMaxAssignmentBytes, host_assignment_from_json, write);
  judge(text, SIZE_MAX, job_record_from_json, write);
  try {
    refusal_from_json(text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) __builtin_trap();
  }
  return 0;
}
