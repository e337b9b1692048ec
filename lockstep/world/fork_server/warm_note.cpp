#include "lockstep/world/fork_server/warm_note.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

constexpr size_t kMaxNoteBytes = 64 << 10;

std::vector<char> read_part(int fd, uint64_t offset, size_t size) {
  std::vector<char> bytes(size);
  const ssize_t got = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

size_t padded(size_t size) {
  return (size + 3) / 4 * 4;
}

bool has_warm_note(const std::vector<char>& notes) {
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
    if (note.n_type == kWarmNoteType && name == sizeof kWarmNoteOwner &&
        std::memcmp(notes.data() + at, kWarmNoteOwner, name) == 0) {
      return true;
    }
    at += padded(name) + padded(note.n_descsz);
  }
  return false;
}

}  // namespace

bool asks_for_warm_start(const std::string& path) {
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
  const auto parts = read_part(fd.get(), file.e_phoff, size_t{file.e_phnum} * sizeof(Elf64_Phdr));
  for (size_t at = 0; at + sizeof(Elf64_Phdr) <= parts.size(); at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr part;
    std::memcpy(&part, parts.data() + at, sizeof part);
    if (part.p_type != PT_NOTE) continue;
    const size_t size = std::min<uint64_t>(part.p_filesz, kMaxNoteBytes);
    if (has_warm_note(read_part(fd.get(), part.p_offset, size))) return true;
  }
  return false;
}

}  // namespace lockstep
