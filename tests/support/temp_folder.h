#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep::inline internal {

/// A test's own folder, removed with this object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX");
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code gone;  // an ending process may remove its own file meanwhile: try again
    while (std::filesystem::remove_all(path_, gone), gone == std::errc::no_such_file_or_directory) {
    }
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::inline internal
