#pragma once

#include <filesystem>

namespace lockstep {

/// Finds out before long work whether its result could be written to `path`.
/// Errors: kNotFound when the folder of `path` does not exist, kInvalidArgument when `path` is a
/// folder, kIo when this user may not write there.
void check_output_file(const std::filesystem::path& path);

}  // namespace lockstep
