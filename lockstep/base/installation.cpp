#include "lockstep/base/installation.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// The first of that name in a folder of the path, links followed; empty if there is none.
fs::path in_path(const std::string& name, const std::string& search_path) {
  for (const std::string& folder : split(search_path, ':')) {
    const fs::path program = fs::path(folder) / name;
    std::error_code failure;
    if (folder.empty() || !fs::is_regular_file(program, failure)) continue;
    if (::access(program.c_str(), X_OK) != 0) continue;
    auto found = fs::canonical(program, failure);
    if (!failure) return found;
  }
  return {};
}

}  // namespace

std::vector<fs::path> installed_program_folders(const std::string& own,
                                                const std::string& search_path) {
  std::vector<fs::path> folders;
  for (const fs::path& folder : {fs::path(own), in_path("lockstep", search_path).parent_path()}) {
    if (!folder.empty() && (folders.empty() || folders[0] != folder)) folders.push_back(folder);
  }
  return folders;
}

std::vector<fs::path> installed_program_folders() {
  const char* const path = std::getenv("PATH");
  return installed_program_folders(program_folder(), path != nullptr ? path : "");
}

}  // namespace lockstep::inline internal
