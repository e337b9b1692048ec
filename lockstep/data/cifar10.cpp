#include "lockstep/data/cifar10.h"

#include <fmt/format.h>

#include "lockstep/base/file.h"
#include "lockstep/data/image_files.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kForm = "CIFAR-10 in binary form";

const ImageFiles kFiles = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                            "data_batch_4.bin", "data_batch_5.bin"},
                           {"test_batch.bin"},
                           {"cifar-10-batches-bin"}};

}  // namespace

std::vector<std::string> cifar10_files(Split split) {
  return kFiles.of(split);
}

fs::path find_cifar10(const fs::path& dir) {
  return find_files(kFiles, dir);
}

std::string missing_cifar10_warning(const fs::path& dir, Split split) {
  return missing_files_warning(kFiles, dir, split);
}

int64_t count_cifar10(const fs::path& dir, Split split) {
  return count_records(kFiles, dir, split, Cifar10::kRecordBytes, kForm);
}

Cifar10 Cifar10::load(const fs::path& dir, Split split) {
  const auto help = fmt::format("; 'lockstep data cifar10 --dir {}' makes one", dir.string());
  Cifar10 data;
  for (const auto& file : require_files(kFiles, dir, split, help)) {
    data.append(read_file(file), file.string());
  }
  return data;
}

void Cifar10::append(std::string_view bytes, const std::string& file) {
  whole_records(bytes.size(), kRecordBytes, file, kForm);
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const auto label = static_cast<uint8_t>(bytes[at]);
    if (label < kClasses) continue;
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: label {} at byte {} is not in [0, {}); the file is damaged or not "
                            "{}",
                            file, label, at, kClasses, kForm));
  }
  records_.insert(records_.end(), bytes.begin(), bytes.end());
}

}  // namespace lockstep::inline internal
