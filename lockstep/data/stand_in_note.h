#pragma once
// Distinguishes generated pictures from the real data set.

#include <filesystem>
#include <string>

namespace lockstep {

/// The note that write_stand_in() puts beside the data, and its beginning.
inline constexpr const char* kStandInNote = "README.txt";
inline constexpr const char* kStandInWords = "Generated stand-in for CIFAR-10";

/// Whether `dir` holds the output of write_stand_in().
bool is_stand_in(const std::filesystem::path& dir);

/// "DIR is a generated stand-in ...": part of every log of work with such data.
std::string stand_in_warning(const std::filesystem::path& dir);

}  // namespace lockstep
