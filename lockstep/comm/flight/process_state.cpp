#include "lockstep/comm/flight/process_state.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/proc.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// The kernel's PF_EXITING. Others see the closed connections of a process that ends before it is a
/// zombie.
constexpr unsigned long kExiting = 4;

/// The letter of proc(5) for a process or a thread, which /proc/ID has both; X of one that ends. 0:
/// there is none.
char state_letter(int64_t id) {
  const auto fields = stat_fields(id);  // from the third on; the ninth has the flags
  if (fields.size() < 7 || fields[0].empty()) return '\0';
  const bool ends = (std::strtoul(fields[6].c_str(), nullptr, 10) & kExiting) != 0;
  return ends && fields[0] != "Z" ? 'X' : fields[0][0];
}

/// The most informative state has the largest weight: of threads that are all stopped, asleep ...
int weight(char letter) {
  return static_cast<int>(std::string_view("SDR").find(letter) + 1);
}

}  // namespace

std::string process_state(int pid) {
  const fs::path folder = fmt::format("/proc/{}", pid);
  std::error_code failure;
  if (!fs::exists(folder, failure)) return failure ? "" : "dead";
  char state = state_letter(pid);
  if (state == 'S' || state == 'D') {
    for (fs::directory_iterator it(folder / "task", failure), end; !failure && it != end;
         it.increment(failure)) {
      const char letter = state_letter(std::atoll(it->path().filename().c_str()));
      if (weight(letter) > weight(state)) state = letter;
    }
  }
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "waiting for a disk";
    case 'T':
    case 't':
      return "stopped";
    case 'Z':
    case 'X':
      return "dead";
    default:  // it may have ended during the look
      return fs::exists(folder, failure) || failure ? "" : "dead";
  }
}

std::string process_state(int pid, uint64_t space) {
  return space != 0 && space == pid_space() ? process_state(pid) : "";
}

}  // namespace lockstep::inline internal
