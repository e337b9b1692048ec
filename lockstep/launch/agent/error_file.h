#pragma once
// A worker's report of its failure: the file that TORCHELASTIC_ERROR_FILE names.

#include <optional>
#include <string>

namespace lockstep::inline internal {

/// The message of such a file, or nothing if it has none. Reads two formats: Python's {"message":
/// {"message": TEXT, "extraInfo": {...}}} and C++'s {"message": TEXT}. Returns at most `max_lines`
/// lines of at most 500 bytes. Pure.
std::optional<std::string> error_message(const std::string& json, int max_lines = 10);

/// The same file with "errorCode" in its message if that is an object; else unchanged. Pure.
std::string with_error_code(const std::string& json, int code);

/// Reads the file and returns its message; nothing if there is no file or no message in it.
std::optional<std::string> read_error_message(const std::string& path);

/// Copies a worker's error file to `to`, the file named by the launcher that started this agent.
/// This way its message reaches the outermost launcher. A missing or unwritable file is no error:
/// it must not change the job's end.
void copy_error_file(const std::string& from, const std::string& to, int code);

}  // namespace lockstep::inline internal
