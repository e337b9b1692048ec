#include "lockstep/data/image_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "lockstep/error.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

std::vector<std::string> ImageFiles::of(Split split) const {
  if (split != Split::kAll) return split == Split::kTrain ? train : test;
  auto names = train;
  names.insert(names.end(), test.begin(), test.end());
  return names;
}

bool file_is_there(const fs::path& path) {
  std::error_code failure;
  const bool found = fs::exists(path, failure);
  if (failure) {
    throw Error(ErrorCode::kIo, fmt::format("open {}: {}", path.string(), failure.message()));
  }
  return found;
}

std::vector<fs::path> present_files(const ImageFiles& files, const fs::path& folder, Split split) {
  std::vector<fs::path> found;
  for (const auto& name : files.of(split)) {
    if (file_is_there(folder / name)) found.push_back(folder / name);
  }
  return found;
}

fs::path find_files(const ImageFiles& files, const fs::path& dir) {
  if (!present_files(files, dir, Split::kAll).empty()) return dir;
  for (const auto& folder : files.folders) {
    if (!present_files(files, dir / folder, Split::kAll).empty()) return dir / folder;
  }
  return {};
}

std::vector<fs::path> require_files(const ImageFiles& files, const fs::path& dir, Split split,
                                    const std::string& help) {
  if (!file_is_there(dir)) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("data folder {} does not exist{}", dir.string(), help));
  }
  const fs::path folder = find_files(files, dir);
  auto found = folder.empty() ? std::vector<fs::path>() : present_files(files, folder, split);
  if (!found.empty()) return found;
  throw Error(ErrorCode::kNotFound,
              fmt::format("{} holds none of {}", (folder.empty() ? dir : folder).string(),
                          fmt::join(files.of(split), ", ")));
}

std::string missing_files_warning(const ImageFiles& files, const fs::path& dir, Split split) {
  const fs::path folder = find_files(files, dir);
  std::vector<std::string> missing;
  const auto names = files.of(split);
  for (const auto& name : names) {
    if (!folder.empty() && !file_is_there(folder / name)) missing.push_back(name);
  }
  if (missing.empty() || missing.size() == names.size()) return "";
  return fmt::format("{} lacks {}: only the other {} of {} files are used", folder.string(),
                     fmt::join(missing, ", "), names.size() - missing.size(), names.size());
}

size_t whole_records(size_t bytes, size_t record_bytes, const std::string& file,
                     const std::string& what) {
  if (bytes == 0) throw Error(ErrorCode::kCorrupt, fmt::format("{} is empty", file));
  const size_t whole = bytes / record_bytes;
  if (const size_t rest = bytes % record_bytes; rest != 0) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: the record at byte {} has {} of {} bytes; the file is cut short "
                            "or not {}",
                            file, whole * record_bytes, rest, record_bytes, what));
  }
  return whole;
}

int64_t count_records(const ImageFiles& files, const fs::path& dir, Split split,
                      size_t record_bytes, const std::string& what) {
  const fs::path folder = find_files(files, dir);
  if (folder.empty()) return 0;
  size_t records = 0;
  for (const auto& file : present_files(files, folder, split)) {
    std::error_code failure;
    const auto bytes = fs::file_size(file, failure);
    if (failure) {
      throw Error(ErrorCode::kIo, fmt::format("size of {}: {}", file.string(), failure.message()));
    }
    records += whole_records(bytes, record_bytes, file.string(), what);
  }
  return static_cast<int64_t>(records);
}

std::vector<std::string> read_names(const fs::path& folder, const char* file) {
  if (folder.empty()) return {};
  std::ifstream lines(folder / file);
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace lockstep::inline internal
