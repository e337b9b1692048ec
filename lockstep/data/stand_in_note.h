#pragma once
// By which one knows generated pictures from the real data set.

#include <filesystem>
#include <string>

namespace lockstep {

/// The note that write_stand_in() puts beside the data, and how it begins.
inline constexpr const char* kStandInNote = "README.txt";
inline constexpr const char* kStandInWords = "Generated stand-in for CIFAR-10";

/// Whether `dir` holds what write_stand_in() wrote.
bool is_stand_in(const std::filesystem::path& dir);

/// "DIR is a generated stand-in ...": what every log of work with such data says.
std::string stand_in_warning(const std::filesystem::path& dir);

}  // namespace lockstep
