#include "lockstep/base/holder.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/proc.h"

namespace lockstep::inline internal {
namespace {

struct PortUser {
  std::string socket, user;
  bool listens = false;
};

/// Lines as " 0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0
/// 4711".
void look_for_port(const char* table, int port, PortUser* found) {
  const std::string end = fmt::format(":{:04X}", port);
  std::ifstream in(table);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, here, there, state, queues, timer, retries, user, timeout, socket;
    words >> number >> here >> there >> state >> queues >> timer >> retries >> user >> timeout;
    if (!(words >> socket) || !here.ends_with(end) || socket == "0") continue;
    const bool listens = state == "0A";
    if (found->socket.empty() || (listens && !found->listens)) *found = {socket, user, listens};
  }
}

/// 0: none that is visible to this user.
int process_with(const std::string& link) {
  namespace fs = std::filesystem;
  for (const pid_t pid : processes()) {
    std::error_code unseen;
    for (fs::directory_iterator fd(fmt::format("/proc/{}/fd", pid), unseen), none;
         !unseen && fd != none; fd.increment(unseen)) {
      std::error_code closed;
      if (fs::read_symlink(fd->path(), closed) == link) return pid;
    }
  }
  return 0;
}

}  // namespace

std::string process_text(int pid) {
  std::ifstream in(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(in, name);
  return name.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, name);
}

std::string port_holder(int port) {
  PortUser found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) look_for_port(table, port, &found);
  if (found.socket.empty()) return "";
  const int pid = process_with("socket:[" + found.socket + "]");
  return pid > 0 ? process_text(pid) : "user " + found.user;
}

std::string taken_by_text(int port) {
  const std::string holder = port_holder(port);
  return holder.empty() ? "already in use" : "already in use, by " + holder;
}

std::string lock_holder(const struct stat& status) {
  const std::string file = fmt::format("{:02x}:{:02x}:{}", ::major(status.st_dev),
                                       ::minor(status.st_dev), status.st_ino);
  std::ifstream in("/proc/locks");
  // "1: FLOCK  ADVISORY  WRITE 3819 00:2e:1234 0 EOF"; a waiting one has "->" after its number.
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, place;
    int pid = 0;
    if (!(words >> number >> kind >> advisory >> access >> pid >> place)) continue;
    if (kind == "FLOCK" && place == file && pid > 0) return process_text(pid);
  }
  return "";
}

}  // namespace lockstep::inline internal
