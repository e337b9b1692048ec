#pragma once
// What a worker wrote about its failure: the file that TORCHELASTIC_ERROR_FILE names.

#include <optional>
#include <string>

namespace lockstep {

/// The message of such a file, or nothing where it has none. Two formats are in use: Python's
/// {"message": {"message": TEXT, "extraInfo": {...}}} and C++'s {"message": TEXT}. At most
/// `max_lines` lines of at most 500 bytes. Pure.
std::optional<std::string> error_message(const std::string& json, int max_lines = 10);

/// The same file with "errorCode" in its message, where that is an object; else as it is. Pure.
std::string with_error_code(const std::string& json, int code);

/// Reads the file: its message; nothing where there is no such file or no message in it.
std::optional<std::string> read_error_message(const std::string& path);

/// Copies a worker's error file to the one that whoever started this agent named, so that its
/// message reaches the outermost launcher. Nothing happens where there is none, or it cannot be
/// written: what the job ends with must not depend on it.
void copy_error_file(const std::string& from, const std::string& to, int code);

}  // namespace lockstep
