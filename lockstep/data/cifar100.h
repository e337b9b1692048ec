#pragma once
// CIFAR-100 in its binary version: train.bin and test.bin, files of records. Each is the byte of
// the coarse label, the byte of the fine label, and 3072 bytes of image as in CIFAR-10.
// Source: https://www.cs.toronto.edu/~kriz/cifar.html, section "The CIFAR-100 dataset".

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

class Cifar100 final : public ImageDataset {
 public:
  enum class Labels : uint8_t { kFine, kCoarse };  ///< 100 classes, or 20 groups of five.

  static constexpr int64_t kFineClasses = 100;
  static constexpr int64_t kCoarseClasses = 20;
  static constexpr ImageShape kShape{3, 32, 32};
  static constexpr int64_t kImageBytes = kShape.numel();
  static constexpr int64_t kRecordBytes = 2 + kImageBytes;

  explicit Cifar100(Labels labels = Labels::kFine) : labels_(labels) {}

  /// Reads the files of `split` that are in `dir`, or in its sub-folder cifar-100-binary, as the
  /// official archive has it. Memory: the files' size. Errors: kNotFound (no such folder; none of
  /// the files), kIo (cannot be read), kCorrupt as append().
  static Cifar100 load(const std::filesystem::path& dir, Split split, Labels labels);

  /// Adds the records of one file. `file` names it in errors. Nothing is added on an error.
  /// Errors: kCorrupt if it is empty, ends within a record, or holds a label out of range, coarse
  /// or fine; naming file and byte offset.
  void append(std::string_view bytes, const std::string& file);

  int64_t size() const override { return static_cast<int64_t>(records_.size()) / kRecordBytes; }
  ImageShape shape() const override { return kShape; }
  int64_t num_classes() const override {
    return labels_ == Labels::kFine ? kFineClasses : kCoarseClasses;
  }
  int64_t label(int64_t index) const override {
    return records_[offset(index) + (labels_ == Labels::kFine ? 1 : 0)];
  }
  std::span<const uint8_t> image(int64_t index) const override {
    return {records_.data() + offset(index) + 2, static_cast<size_t>(kImageBytes)};
  }

 private:
  static size_t offset(int64_t index) { return static_cast<size_t>(index * kRecordBytes); }

  Labels labels_;
  std::vector<uint8_t> records_;  // whole records, as in the files
};

/// As count_cifar10() and missing_cifar10_warning().
int64_t count_cifar100(const std::filesystem::path& dir, Split split);
std::string missing_cifar100_warning(const std::filesystem::path& dir, Split split);

/// From fine_label_names.txt or coarse_label_names.txt of the archive; empty without it.
std::vector<std::string> cifar100_names(const std::filesystem::path& dir, Cifar100::Labels labels);

}  // namespace lockstep::inline internal
