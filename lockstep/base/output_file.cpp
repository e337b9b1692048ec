#include "lockstep/base/output_file.h"

#include <unistd.h>

#include "lockstep/error.h"

namespace lockstep {

void check_output_file(const std::filesystem::path& path) {
  std::error_code failure;
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, failure)) {
    throw Error(ErrorCode::kNotFound,
                path.string() + " cannot be written: there is no folder " + folder.string());
  }
  if (std::filesystem::is_directory(path, failure)) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + " is a folder, a file is needed");
  }
  if (::access(folder.c_str(), W_OK) != 0) throw io_error("write to folder " + folder.string());
}

}  // namespace lockstep
