#include "lockstep/launch/process/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <algorithm>
#include <iterator>
#include <string_view>
#include "lockstep/base/descriptors.h"
#include "lockstep/base/env.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/world/cpu_topology.h"

namespace lockstep::inline internal {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// The interpreter in a script's "#!" line; "": there is none.
std::string interpreter_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> bytes{};  // the kernel reads no more either
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  std::string_view line(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0);
  if (!line.starts_with("#!")) return "";
  line = line.substr(2, line.find('\n') - 2);
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

Program found_or_not_executable(const std::string& name, const std::string& path) {
  if (::access(path.c_str(), X_OK) == 0) {
    const std::string interpreter = interpreter_of(path);
    if (interpreter.empty() || is_file(interpreter)) return {path, 0, ""};
    return {"", 126,
            fmt::format("script {}: its interpreter {} does not exist", name, interpreter)};
  }
  return {"", 126, fmt::format("{} is not executable; for Python: python3 {}", name, name)};
}

Program missing(const std::string& name) {
  if (name.empty()) return {"", 127, "the program's name is empty"};
  if (name.find('/') == std::string::npos) {
    // Verbs of `lockstep` that are also programs of ranks.
    constexpr std::string_view kVerbs[] = {"train", "eval", "predict", "bench"};
    std::string hint;
    if (std::find(std::begin(kVerbs), std::end(kVerbs), name) != std::end(kVerbs)) {
      hint = fmt::format(", did you mean '-- lockstep {}'?", name);
    } else if (is_file(name)) {
      hint = fmt::format(", did you mean ./{}?", name);
    }
    return {"", 127, fmt::format("program {} is not in PATH{}", name, hint)};
  }
  struct stat status {};
  if (::stat(name.c_str(), &status) == 0) {
    return {"", 126, fmt::format("{} is not a file", name)};
  }
  return {"", 127, fmt::format("program {} does not exist", name)};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct Child {
  const char* path;
  char* const* argv;
  char* const* environment;
  int stdout_fd;
  int stderr_fd;
  int kept_fd;
  int report_fd;  ///< Closed by exec; gets errno when exec fails.
  pid_t parent;
  const sigset_t* mask;
  const std::vector<unsigned long>* cpus;
  const rlimit* descriptors;  ///< The user's limit; null: this process's.
};

/// Between vfork and exec: makes only system calls, allocates nothing, writes no memory of the
/// parent.
[[noreturn]] void become(const Child& child) {
  // Set before exec; if the agent died before this call, no signal would come.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != child.parent) ::_exit(127);
  ::setsid();
  if (child.stdout_fd >= 0) ::dup2(child.stdout_fd, STDOUT_FILENO);
  if (child.stderr_fd >= 0) ::dup2(child.stderr_fd, STDERR_FILENO);
  if (child.kept_fd >= 0) ::fcntl(child.kept_fd, F_SETFD, 0);
  if (!child.cpus->empty()) bind_to(*child.cpus);  // a CPU that is removed meanwhile is no error
  if (child.descriptors != nullptr) ::setrlimit(RLIMIT_NOFILE, child.descriptors);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, child.mask, nullptr);
  ::execve(child.path, child.argv, child.environment);
  const int failure = errno;
  [[maybe_unused]] const ssize_t put = ::write(child.report_fd, &failure, sizeof failure);
  ::_exit(127);
}

/// A separate function, so that the child cannot overwrite a frame that the parent still uses.
[[gnu::noinline]] pid_t vfork_and_become(const Child& child) {
  // posix_spawn cannot set a parent-death signal, and fork would copy page tables.
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) become(child);  // NOLINT(clang-analyzer-unix.Vfork)
  return pid;
}

}  // namespace

Program find_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    return is_file(name) ? found_or_not_executable(name, name) : missing(name);
  }
  Program last = missing(name);
  for (const std::string& folder : split(search_path, ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (!is_file(path)) continue;
    last = found_or_not_executable(name, path);
    if (last.exit_code == 0) return last;
  }
  return last;
}

std::string program_search_path() {
  const std::string path = env_or("PATH", "/usr/bin:/bin");
  const std::string own = program_folder();
  return own.empty() ? path : path + ":" + own;
}

pid_t spawn(const Spawn& spawn, const sigset_t& original_mask) {
  std::vector<std::string> arguments = spawn.argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : *spawn.environment) variables.push_back(name + "=" + value);
  const auto argv = pointers(arguments);
  const auto environment = pointers(variables);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw io_error("pipe");
  const UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  const auto cpus = cpu_mask(spawn.cpus);
  const auto descriptors = users_descriptor_limit();
  const Child child = {spawn.path.c_str(),
                       argv.data(),
                       environment.data(),
                       spawn.stdout_fd,
                       spawn.stderr_fd,
                       spawn.kept_fd,
                       report_write.get(),
                       ::getpid(),
                       &original_mask,
                       &cpus,
                       descriptors ? &*descriptors : nullptr};
  const pid_t pid = vfork_and_become(child);
  if (pid < 0) throw start_error("start " + spawn.path);
  report_write.reset();
  int failure = 0;
  if (::read(report_read.get(), &failure, sizeof failure) > 0) {
    ::waitpid(pid, nullptr, 0);
    errno = failure;
    throw ExecError(ErrorCode::kIo, io_error("cannot execute " + spawn.path).what());
  }
  return pid;
}

}  // namespace lockstep::inline internal
