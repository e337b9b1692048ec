#include "lockstep/data/cifar100.h"

#include <fmt/format.h>

#include "lockstep/base/file.h"
#include "lockstep/data/image_files.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHundredForm = "CIFAR-100 in binary form";

const ImageFiles kHundredFiles = {{"train.bin"}, {"test.bin"}, {"cifar-100-binary"}};

void check_label(std::string_view bytes, size_t at, int64_t classes, const char* kind,
                 const std::string& file) {
  const auto label = static_cast<uint8_t>(bytes[at]);
  if (label < classes) return;
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}: {} label {} at byte {} is not in [0, {}); the file is damaged or "
                          "not {}",
                          file, kind, label, at, classes, kHundredForm));
}

}  // namespace

Cifar100 Cifar100::load(const fs::path& dir, Split split, Labels labels) {
  Cifar100 data(labels);
  for (const auto& file : require_files(kHundredFiles, dir, split, "")) {
    data.append(read_file(file), file.string());
  }
  return data;
}

void Cifar100::append(std::string_view bytes, const std::string& file) {
  whole_records(bytes.size(), kRecordBytes, file, kHundredForm);
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    check_label(bytes, at, kCoarseClasses, "coarse", file);
    check_label(bytes, at + 1, kFineClasses, "fine", file);
  }
  records_.insert(records_.end(), bytes.begin(), bytes.end());
}

int64_t count_cifar100(const fs::path& dir, Split split) {
  return count_records(kHundredFiles, dir, split, Cifar100::kRecordBytes, kHundredForm);
}

std::string missing_cifar100_warning(const fs::path& dir, Split split) {
  return missing_files_warning(kHundredFiles, dir, split);
}

std::vector<std::string> cifar100_names(const fs::path& dir, Cifar100::Labels labels) {
  const bool fine = labels == Cifar100::Labels::kFine;
  return read_names(find_files(kHundredFiles, dir),
                    fine ? "fine_label_names.txt" : "coarse_label_names.txt");
}

}  // namespace lockstep::inline internal
