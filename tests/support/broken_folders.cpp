#include "tests/support/broken_folders.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>
#include <string_view>

namespace {

int error_of_disk = 0;        ///< 0: folders are whole.
DIR* broken_after = nullptr;  ///< The folder whose one name was read.

}  // namespace

// The standard library's directory_iterator calls this one in place of the C library's.
extern "C" dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (error_of_disk == 0) return real(folder);
  if (folder == broken_after) {
    broken_after = nullptr;
    errno = error_of_disk;
    return nullptr;
  }
  dirent* entry = real(folder);
  const std::string_view name = entry == nullptr ? "." : entry->d_name;
  if (name != "." && name != "..") broken_after = folder;
  return entry;
}

namespace lockstep::testing {

BrokenFolders::BrokenFolders(int error) {
  broken_after = nullptr;
  error_of_disk = error;
}

BrokenFolders::~BrokenFolders() {
  error_of_disk = 0;
}

}  // namespace lockstep::testing
