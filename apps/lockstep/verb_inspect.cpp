// lockstep inspect DIR|PID ...: what the ranks of a running or dead job did last.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/flight/ring.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

FlightRecord load(const fs::path& path, const std::string& what) {
  const std::string bytes = read_file(path);
  return read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), what);
}

/// Whether the process that wrote the file still has it open: its number alone could by now be
/// another process's, and processes of other hosts cannot be seen.
bool still_open(const FlightRecord& record, const fs::path& path) {
  std::error_code failure;
  const fs::path folder = fmt::format("/proc/{}/fd", record.pid);
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (fs::equivalent(entry.path(), path, failure)) return true;
  }
  return false;
}

std::string host_name() {
  char name[64] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::vector<FlightRecord> records_in(const fs::path& folder) {
  std::vector<FlightRecord> records;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != kFlightSuffix) continue;
    records.push_back(load(entry.path(), entry.path().string()));
    FlightRecord& record = records.back();
    record.alive = record.host != host_name() || still_open(record, entry.path());
  }
  return records;
}

/// Parent of each process that can be seen.
std::map<int, int> parents() {
  std::map<int, int> parents;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename().string();
    if (!is_number(name)) continue;
    std::ifstream file(entry.path() / "stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    // "PID (NAME) S PPID ..."; the name may hold anything, so from its last bracket on.
    int parent = 0;
    const size_t bracket = stat.rfind(')');
    if (bracket == std::string::npos) continue;
    if (std::sscanf(stat.c_str() + bracket + 1, " %*c %d", &parent) == 1) {
      parents[std::stoi(name)] = parent;
    }
  }
  return parents;
}

bool descends(int pid, int ancestor, const std::map<int, int>& parents) {
  for (int steps = 0; steps < 64; ++steps) {
    if (pid == ancestor) return true;
    const auto parent = parents.find(pid);
    if (parent == parents.end()) return false;
    pid = parent->second;
  }
  return false;
}

bool is_recorder(const fs::path& descriptor) {
  std::error_code failure;
  const std::string target = fs::read_symlink(descriptor, failure).string();
  return target.starts_with(std::string("/memfd:") + kFlightMemfd) ||
         fs::path(target).extension() == kFlightSuffix;
}

/// Of the process and its descendants: `pid` may be a worker or the agent that started it.
std::vector<FlightRecord> records_of(int pid) {
  std::vector<FlightRecord> records;
  const auto family = parents();
  for (const auto& [each, parent] : family) {
    if (!descends(each, pid, family)) continue;
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", each), failure)) {
      if (!is_recorder(entry.path())) continue;
      FlightRecord record = load(entry.path(), fmt::format("process {}", each));
      // A child that the rank forked has the same memory open.
      if (record.pid == each) records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<FlightRecord> records_for(const std::string& target) {
  if (fs::is_directory(target)) return records_in(target);
  if (!is_number(target)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is neither a folder with flight recorders (lockstep run --log_dir "
                    "makes one) nor the number of a process",
                    target));
  }
  if (target.size() > 9 || ::kill(std::stoi(target), 0) != 0) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no process {}", target));
  }
  return records_of(std::stoi(target));
}

}  // namespace

int verb_inspect(const std::vector<std::string>& args) {
  CLI::App app(
      "What the ranks of a job did last: their last operation, since when they wait, and who is "
      "odd. For a job that runs: the process of `lockstep run` or of a rank. For one that is dead: "
      "the folder attempt_0 that `lockstep run --log_dir` made.",
      "lockstep inspect");
  std::vector<std::string> targets;
  app.add_option("DIR|PID", targets, "folders with rank_*.flight, or processes")->required();
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw Error(ErrorCode::kInvalidArgument,
                std::string(error.what()) + " (see lockstep inspect --help)");
  }
  std::vector<FlightRecord> records;
  for (const std::string& target : targets) {
    for (FlightRecord& record : records_for(target)) records.push_back(std::move(record));
  }
  if (records.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: no rank there has made a process group yet", targets.front()));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  fmt::print("{}", flight_table(std::move(records), now_ns));
  return 0;
}

}  // namespace lockstep::app
