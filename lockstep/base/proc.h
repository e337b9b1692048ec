#pragma once
// Information that only /proc has.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Errors: kUnavailable (/proc is not mounted, as in a chroot); the message explains how to mount
/// it.
void need_proc();

/// The fields of /proc/PID/stat from the process's state on: proc(5)'s field n is at n - 3. Empty:
/// the process does not exist, or is not visible.
std::vector<std::string> stat_fields(int64_t pid);

/// Start time of a process, in clock ticks since boot: with its pid it identifies the process.
/// Empty: the process does not exist, or has ended.
std::string process_start(int64_t pid);

/// Pids of the processes that /proc shows below `root`, in ascending order.
std::vector<pid_t> processes(const std::string& root = "");

/// A line "8:cpu,cpuacct:/a/b" of a process's cgroups; version 2's names no controllers.
struct CgroupLine {
  std::string controllers, path;
};
/// This process's; none without /proc.
std::vector<CgroupLine> own_cgroups(const std::string& root = "");

/// Threads of this process; 0 without /proc.
int thread_count();

#ifdef __SANITIZE_THREAD__
inline constexpr int kThreadsOfSanitizer = 1;  // started some time after main()
#else
inline constexpr int kThreadsOfSanitizer = 0;
#endif

/// Path of the program that this process runs. Errors: as need_proc(); kIo.
std::string own_program();

/// The folder that contains it; empty if unknown.
std::string program_folder();

}  // namespace lockstep::inline internal
