#include "tests/launch/launched.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"
#include "lockstep/world/environment.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_zombie(const std::string& pid) {
  const std::string stat = read_text("/proc/" + pid + "/stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() || stat[end + 2] == 'Z';
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const auto& each : texts) list.push_back(const_cast<char*>(each.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Uses posix_spawn: this process has threads. After a fork one of them may hold the allocator's
/// lock, so the child must not allocate. The lock of glibc is safe, but AddressSanitizer's stays
/// locked for ever.
pid_t start(const std::vector<std::string>& words, const Environment& environment, int out, int err,
            bool own_group) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all;
  ::sigfillset(&all);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, words[0].c_str(), &files, &attributes,
                                    pointers(words).data(), pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (failure != 0) throw std::runtime_error(words[0] + ": " + std::strerror(failure));
  return pid;
}

/// A separate list of jobs, because agents that are killed with their watchdogs stay in it.
const std::string& list_of_jobs() {
  static const TempFolder folder;
  static const std::string jobs = folder / "jobs";
  return jobs;
}

}  // namespace

std::string built_program(const std::string& name) {
  return env_or("LOCKSTEP_BIN_DIR", "build/release/bin") + "/" + name;
}

Launched::Launched(const std::vector<std::string>& words,
                   const std::map<std::string, std::string>& variables, Group group) {
  static std::atomic<int> number{0};
  mark_ = "LOCKSTEP_TEST_MARK=" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  Environment environment = this_environment();
  environment["LOCKSTEP_TEST_MARK"] = mark_.substr(mark_.find('=') + 1);
  environment["LOCKSTEP_JOBS_DIR"] = list_of_jobs();
  for (const auto& [name, value] : variables) environment[name] = value;
  std::vector<std::string> command = words;
  if (command[0].find('/') == std::string::npos) {
    command.insert(command.begin(), built_program("lockstep"));
  }
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe");
  UniqueFd out_end(out[0]);
  UniqueFd err_end(err[0]);
  {
    const UniqueFd its_out(out[1]);
    const UniqueFd its_err(err[1]);
    pid_ = start(command, environment, its_out.get(), its_err.get(), group == Group::kOwn);
  }
  out_.reader = std::thread(read_all, std::move(out_end), &out_);
  err_.reader = std::thread(read_all, std::move(err_end), &err_);
}

Launched::~Launched() {
  if (ended_ < 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const pid_t pid : alive()) ::kill(pid, SIGKILL);
  if (out_.reader.joinable()) out_.reader.join();
  if (err_.reader.joinable()) err_.reader.join();
}

int Launched::wait(std::chrono::seconds limit) {
  const auto deadline = Deadline::after(limit);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) != pid_) {
    if (deadline.passed()) return -1;
    std::this_thread::sleep_for(2ms);
  }
  out_.reader.join();
  err_.reader.join();
  ended_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended_;
}

void Launched::send(int signal) const {
  ::kill(pid_, signal);
}

bool Launched::wait_for(const std::string& what, int times, std::chrono::seconds limit) const {
  const auto deadline = Deadline::after(limit);
  while (true) {
    const std::string all = out() + err();
    int found = 0;
    for (size_t at = all.find(what); at != std::string::npos; at = all.find(what, at + 1)) ++found;
    if (found >= times) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(2ms);
  }
}

std::vector<pid_t> Launched::alive() const {
  std::vector<pid_t> pids;
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string variables = '\0' + read_text("/proc/" + pid + "/environ");
    if (variables.find('\0' + mark_ + '\0') == std::string::npos || is_zombie(pid)) continue;
    pids.push_back(std::stoi(pid));
  }
  ::closedir(proc);
  return pids;
}

bool Launched::wait_all_gone(std::chrono::seconds limit) const {
  const auto deadline = Deadline::after(limit);
  while (!alive().empty()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

std::string Launched::text(const Captured& captured) {
  MutexLock lock(captured.mutex);
  return captured.text;
}

void Launched::read_all(const UniqueFd& fd, Captured* captured) {
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    MutexLock lock(captured->mutex);
    captured->text.append(buffer, static_cast<size_t>(got));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void await_records(const std::filesystem::path& folder, int count) {
  const auto found = [&] {
    int records = 0;
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
      if (entry.path().extension() == ".json") ++records;
    }
    return records;
  };
  const auto limit = Deadline::after(60s);
  while (found() < count && !limit.passed()) std::this_thread::sleep_for(1ms);
}

}  // namespace lockstep::testing
