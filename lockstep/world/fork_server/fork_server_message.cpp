#include "lockstep/world/fork_server/fork_server_message.h"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/passed_descriptors.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxNoteBytes = 64 << 10;

std::vector<char> read_part(int fd, uint64_t offset, size_t size) {
  std::vector<char> bytes(size);
  const ssize_t got = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

/// The same; from `head`, the file's first bytes, if they have it all.
std::vector<char> read_part(int fd, const std::vector<char>& head, uint64_t offset, size_t size) {
  if (offset > head.size() || size > head.size() - offset) return read_part(fd, offset, size);
  const auto begin = head.begin() + static_cast<ptrdiff_t>(offset);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

size_t padded(size_t size) {
  return (size + 3) / 4 * 4;
}

bool has_fork_server_note(const std::vector<char>& notes) {
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    at += sizeof note;
    const size_t name = note.n_namesz;
    const size_t rest = notes.size() - at;
    if (name > rest || note.n_descsz > rest || padded(name) + padded(note.n_descsz) > rest) {
      return false;
    }
    if (note.n_type == kForkServerNoteType && name == sizeof kForkServerNoteOwner &&
        std::memcmp(notes.data() + at, kForkServerNoteOwner, name) == 0) {
      return true;
    }
    at += padded(name) + padded(note.n_descsz);
  }
  return false;
}

}  // namespace

bool supports_fork_server(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const auto head = read_part(fd.get(), 0, 4096);
  Elf64_Ehdr file;
  if (head.size() < sizeof file) return false;
  std::memcpy(&file, head.data(), sizeof file);
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
      file.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  const auto parts =
      read_part(fd.get(), head, file.e_phoff, size_t{file.e_phnum} * sizeof(Elf64_Phdr));
  for (size_t at = 0; at + sizeof(Elf64_Phdr) <= parts.size(); at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr part;
    std::memcpy(&part, parts.data() + at, sizeof part);
    if (part.p_type != PT_NOTE) continue;
    const size_t size = std::min<uint64_t>(part.p_filesz, kMaxNoteBytes);
    if (has_fork_server_note(read_part(fd.get(), head, part.p_offset, size))) return true;
  }
  return false;
}

UniqueFd environment_memory(const Environment& environment) {
  std::string bytes;
  for (const auto& [name, value] : environment) bytes += name + "=" + value + '\0';
  UniqueFd memory(::memfd_create("lockstep-environment", MFD_CLOEXEC));
  if (!memory) throw io_error("memfd_create");
  write_all(memory.get(), bytes.data(), bytes.size(), "environment");
  return memory;
}

bool send_request(int socket, int32_t number, const std::array<int, 3>& environment_out_err) {
  const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
  return send_with_descriptors(socket, bytes, environment_out_err) == sizeof number;
}

std::optional<ForkRequest> receive_request(int socket) {
  ForkRequest request;
  std::vector<UniqueFd> fds;
  ssize_t got = 0;
  do {
    got = receive_with_descriptors(
        socket, {reinterpret_cast<char*>(&request.number), sizeof request.number}, &fds);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof request.number || fds.size() != 3) return std::nullopt;
  request.environment = std::move(fds[0]);
  request.out = std::move(fds[1]);
  request.err = std::move(fds[2]);
  return request;
}

bool send_answer(int socket, const ForkAnswer& answer) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, &answer, sizeof answer, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof answer;
}

std::optional<ForkAnswer> receive_answer(int socket, Deadline deadline, int interrupt) {
  std::array<pollfd, 2> items = {{{socket, POLLIN, 0}, {interrupt, POLLIN, 0}}};
  int count = 0;
  do {
    count = ::poll(items.data(), items.size(), deadline.left_poll_ms());
  } while (count < 0 && errno == EINTR);
  ForkAnswer answer;
  if (items[0].revents == 0 || ::recv(socket, &answer, sizeof answer, 0) != sizeof answer)
    return std::nullopt;
  return answer;
}

}  // namespace lockstep::inline internal
