#pragma once
// A folder's entries by system calls alone, for a process between fork and exec.

#include <dirent.h>
#include <sys/types.h>

namespace lockstep::inline internal {

/// Calls use(name) for each entry of an open folder, "." and ".." too. Allocates nothing.
template <class Use>
void for_each_name(int folder, const Use& use) {
  alignas(dirent64) char entries[1 << 15];
  while (true) {
    const ssize_t size = ::getdents64(folder, entries, sizeof entries);
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      use(entry->d_name);
      at += entry->d_reclen;
    }
  }
}

}  // namespace lockstep::inline internal
