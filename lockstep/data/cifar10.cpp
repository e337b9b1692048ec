#include "lockstep/data/cifar10.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchiveFolder = "cifar-10-batches-bin";

bool is_there(const fs::path& path) {
  std::error_code failure;
  const bool found = fs::exists(path, failure);
  if (failure) {
    throw Error(ErrorCode::kIo, fmt::format("open {}: {}", path.string(), failure.message()));
  }
  return found;
}

std::vector<fs::path> present(const fs::path& dir, Split split) {
  std::vector<fs::path> found;
  for (const auto& name : cifar10_files(split)) {
    if (is_there(dir / name)) found.push_back(dir / name);
  }
  return found;
}

/// The number of records in a file of `bytes`.
size_t whole_records(size_t bytes, const std::string& file) {
  if (bytes == 0) throw Error(ErrorCode::kCorrupt, fmt::format("{} is empty", file));
  const size_t whole = bytes / Cifar10::kRecordBytes;
  if (const size_t rest = bytes % Cifar10::kRecordBytes; rest != 0) {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: the record at byte {} has {} of {} bytes; the file is cut short or "
                    "not CIFAR-10 in binary form",
                    file, whole * Cifar10::kRecordBytes, rest, Cifar10::kRecordBytes));
  }
  return whole;
}

}  // namespace

const std::vector<std::string>& cifar10_files(Split split) {
  static const std::vector<std::string> train = {"data_batch_1.bin", "data_batch_2.bin",
                                                 "data_batch_3.bin", "data_batch_4.bin",
                                                 "data_batch_5.bin"};
  static const std::vector<std::string> test = {"test_batch.bin"};
  static const std::vector<std::string> all = [] {
    auto names = train;
    names.insert(names.end(), test.begin(), test.end());
    return names;
  }();
  return split == Split::kTrain ? train : split == Split::kTest ? test : all;
}

fs::path find_cifar10(const fs::path& dir) {
  for (const auto& candidate : {dir, dir / kArchiveFolder}) {
    for (const Split split : {Split::kTrain, Split::kTest}) {
      if (!present(candidate, split).empty()) return candidate;
    }
  }
  return {};
}

std::string missing_cifar10_warning(const fs::path& dir, Split split) {
  const fs::path folder = find_cifar10(dir);
  std::vector<std::string> missing;
  const auto& names = cifar10_files(split);
  for (const auto& name : names) {
    if (!folder.empty() && !is_there(folder / name)) missing.push_back(name);
  }
  if (missing.empty() || missing.size() == names.size()) return "";
  return fmt::format("{} lacks {}: only the other {} of {} files are used", folder.string(),
                     fmt::join(missing, ", "), names.size() - missing.size(), names.size());
}

int64_t count_cifar10(const fs::path& dir, Split split) {
  const fs::path folder = find_cifar10(dir);
  if (folder.empty()) return 0;
  size_t records = 0;
  for (const auto& file : present(folder, split)) {
    std::error_code failure;
    const auto bytes = fs::file_size(file, failure);
    if (failure) {
      throw Error(ErrorCode::kIo, fmt::format("size of {}: {}", file.string(), failure.message()));
    }
    records += whole_records(bytes, file.string());
  }
  return static_cast<int64_t>(records);
}

Cifar10 Cifar10::load(const fs::path& dir, Split split) {
  if (!is_there(dir)) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("data folder {} does not exist; 'lockstep data cifar10 --dir {}' makes "
                            "one",
                            dir.string(), dir.string()));
  }
  const fs::path folder = find_cifar10(dir);
  const auto files = folder.empty() ? std::vector<fs::path>() : present(folder, split);
  if (files.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{} holds none of {}", (folder.empty() ? dir : folder).string(),
                            fmt::join(cifar10_files(split), ", ")));
  }
  Cifar10 data;
  for (const auto& file : files) data.append(read_file(file), file.string());
  return data;
}

void Cifar10::append(std::string_view bytes, const std::string& file) {
  whole_records(bytes.size(), file);
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const auto label = static_cast<uint8_t>(bytes[at]);
    if (label < kClasses) continue;
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: label {} at byte {} is not in [0, {}); the file is damaged or not "
                            "CIFAR-10 in binary form",
                            file, label, at, kClasses));
  }
  records_.insert(records_.end(), bytes.begin(), bytes.end());
}

}  // namespace lockstep
