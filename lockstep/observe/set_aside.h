#pragma once
// Private to the layer.

#include <filesystem>
#include <string>

namespace lockstep {

/// A log that a run cannot go on in must not stop the run: renames `path` to PATH.1 (.2, ...), and
/// warns of it with `why`. Errors: kIo.
void set_aside(const std::filesystem::path& path, const std::string& why);

}  // namespace lockstep
