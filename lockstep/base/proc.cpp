#include "lockstep/base/proc.h"

#include <unistd.h>

#include <filesystem>

#include "lockstep/error.h"

namespace lockstep {

void need_proc() {
  if (::access("/proc/self/stat", F_OK) == 0) return;
  throw Error(ErrorCode::kUnavailable,
              "/proc is needed and is not mounted here; 'mount -t proc proc /proc' does that");
}

std::string own_program() {
  need_proc();
  std::error_code failure;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) return path.string();
  throw Error(ErrorCode::kIo, "read /proc/self/exe: " + failure.message());
}

std::string program_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
}

}  // namespace lockstep
