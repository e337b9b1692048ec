#include "lockstep/launch/jobs/rank_process.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/base/clock.h"
#include "lockstep/base/file.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/jobs/job_entry.h"

namespace lockstep::inline internal {
namespace {

// Indices into stat_fields(): proc(5)'s numbers less three.
constexpr size_t kState = 0;
constexpr size_t kParent = 1;
constexpr size_t kSession = 3;
constexpr size_t kStart = 19;

/// "" if the process has ended, or may not be read.
std::string text_of(pid_t pid, const char* name) {
  return read_if_there(fmt::format("/proc/{}/{}", pid, name), 16 << 20);
}

std::string link_of(pid_t pid, const char* name) {
  std::error_code failure;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/{}", pid, name), failure).string();
}

/// `text` holds texts, each ended by a 0 byte.
std::vector<std::string> texts_in(const std::string& text) {
  auto texts = split(text, '\0');
  if (!texts.empty() && texts.back().empty()) texts.pop_back();
  return texts;
}

Environment environment_of(pid_t pid) {
  Environment variables;
  for (const std::string& entry : texts_in(text_of(pid, "environ"))) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

std::vector<pid_t> ancestors_of(const std::vector<std::string>& stat) {
  constexpr size_t kMost = 64;  // limits the loop if a pid is reused meanwhile
  std::vector<pid_t> ancestors;
  auto fields = stat;
  while (fields.size() > kParent && ancestors.size() < kMost) {
    const pid_t parent = std::atoi(fields[kParent].c_str());
    if (parent <= 1) break;
    ancestors.push_back(parent);
    fields = stat_fields(parent);
  }
  return ancestors;
}

/// Seconds since 1970 of a moment in the kernel's ticks since boot.
double moment_of(const std::string& ticks) {
  timespec up{};
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  const double up_s = static_cast<double>(up.tv_sec) + static_cast<double>(up.tv_nsec) / 1e9;
  const double start_s = std::atof(ticks.c_str()) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return seconds_since_1970() - (up_s - start_s);
}

}  // namespace

std::optional<RankProcess> read_rank_process(pid_t pid, int rank, int size) {
  const auto stat = stat_fields(pid);
  if (stat.size() <= kStart || stat[kState] == "Z" || stat[kState] == "X") return std::nullopt;
  RankProcess process;
  process.pid = pid;
  process.rank = rank;
  process.size = size;
  process.ancestors = ancestors_of(stat);
  process.session = std::atoi(stat[kSession].c_str());
  process.began = moment_of(stat[kStart]);
  process.stopped = stat[kState] == "T";
  process.program = link_of(pid, "exe");
  process.folder = link_of(pid, "cwd");
  process.network = link_of(pid, "ns/net");
  process.command = texts_in(text_of(pid, "cmdline"));
  process.environment = environment_of(pid);
  process.parent_program = link_of(std::atoi(stat[kParent].c_str()), "exe");
  if (!process.ancestors.empty()) {
    process.parent_name = first_line(text_of(process.ancestors.front(), "comm"));
  }
  // A process that is just ending has neither.
  if (process.command.empty() && process.program.empty()) return std::nullopt;
  return process;
}

}  // namespace lockstep::inline internal
