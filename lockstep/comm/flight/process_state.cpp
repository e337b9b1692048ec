#include "lockstep/comm/flight/process_state.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// The kernel's PF_EXITING. Others see the closed connections of a process that ends before it is a
/// zombie.
constexpr unsigned long kExiting = 4;

/// The letter in "PID (NAME) S ...", X of a process that ends. The name may contain anything, so
/// the letter is searched behind its last bracket. 0 if the file or the letter is missing.
char state_letter(const fs::path& stat_file) {
  std::string stat;
  try {
    stat = read_file(stat_file, 1 << 16);
  } catch (const Error&) {
    return '\0';
  }
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= stat.size()) return '\0';
  const auto fields = split(stat.substr(bracket + 2), ' ');  // from proc(5)'s third on
  const auto flags = fields.size() > 6 ? std::strtoul(fields[6].c_str(), nullptr, 10) : 0;
  return (flags & kExiting) != 0 && fields[0] != "Z" ? 'X' : stat[bracket + 2];
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
  char state = state_letter(folder / "stat");
  if (state == 'S' || state == 'D') {
    for (fs::directory_iterator it(folder / "task", failure), end; !failure && it != end;
         it.increment(failure)) {
      const char letter = state_letter(it->path() / "stat");
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
