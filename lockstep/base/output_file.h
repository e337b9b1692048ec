#pragma once

#include <filesystem>

namespace lockstep {

/// Checks, before long work, that its result can be written to `path`. Errors: kNotFound if the
/// folder of `path` does not exist, kInvalidArgument if `path` is a folder, kIo if this user may
/// not write there.
void check_output_file(const std::filesystem::path& path);

}  // namespace lockstep
