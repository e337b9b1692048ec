#pragma once
// Distinguishes synthetic pictures from the real data set.

#include <filesystem>
#include <string>

namespace lockstep::inline internal {

/// The note that write_synthetic_cifar10() puts beside the data, and its beginning.
inline constexpr const char* kSyntheticNote = "README.txt";
inline constexpr const char* kSyntheticWords = "Synthetic data in place of CIFAR-10";

/// Whether `dir` holds the output of write_synthetic_cifar10(), also of earlier versions.
bool is_synthetic(const std::filesystem::path& dir);

/// "DIR is a synthetic data set ...": part of every log of work with such data.
std::string synthetic_warning(const std::filesystem::path& dir);

}  // namespace lockstep::inline internal
