#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::testing {

struct ArchiveEntry {
  std::string path;
  std::string bytes;
  std::string link_to{};  ///< Not empty: a symbolic link.
};

/// Writes a .tar.gz.
void make_archive(const std::filesystem::path& path, const std::vector<ArchiveEntry>& entries);

/// One CIFAR-10 record of this label, all pixels `pixel`.
std::string cifar_record(int label, int pixel);

}  // namespace lockstep::testing
