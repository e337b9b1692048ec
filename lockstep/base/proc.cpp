#include "lockstep/base/proc.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

void need_proc() {
  if (::access("/proc/self/stat", F_OK) == 0) return;
  throw Error(ErrorCode::kUnavailable,
              "/proc is needed and is not mounted here; 'mount -t proc proc /proc' does that");
}

std::vector<std::string> stat_fields(int64_t pid) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/stat", pid), 1 << 16);
  } catch (const Error&) {
    return {};
  }
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos || name_end + 2 > text.size()) return {};
  return split(std::string_view(text).substr(name_end + 2), ' ');
}

std::string process_start(int64_t pid) {
  const auto fields = stat_fields(pid);
  constexpr size_t kState = 0, kStart = 19;  // fields 3 and 22
  if (fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X") return "";
  return fields[kStart];
}

std::vector<pid_t> processes(const std::string& root) {
  std::vector<pid_t> pids;
  for (const std::string& name : entry_names(root + "/proc")) {
    if (const auto pid = as_number<pid_t>(name)) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::vector<CgroupLine> own_cgroups(const std::string& root) {
  std::vector<CgroupLine> lines;
  for (const std::string& line : split(read_if_there(root + "/proc/self/cgroup"), '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    lines.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return lines;
}

int thread_count() {
  std::error_code none;
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task", none), {}));
}

std::string own_program() {
  need_proc();
  std::error_code failure;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) return path.string();
  throw Error(ErrorCode::kIo, "read /proc/self/exe: " + failure.message());
}

std::string program_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
}

}  // namespace lockstep::inline internal
