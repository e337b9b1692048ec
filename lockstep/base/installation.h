#pragma once
// Where the files are that `make install` puts beside the programs.

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Folders of programs, links followed: that of the running program, then that of the `lockstep` in
/// PATH, for programs of one's own. Both, or fewer if one is unknown or they are the same.
std::vector<std::filesystem::path> installed_program_folders();

/// The same from their parts. `own`: the running program's folder, or empty.
std::vector<std::filesystem::path> installed_program_folders(const std::string& own,
                                                             const std::string& search_path);

}  // namespace lockstep::inline internal
