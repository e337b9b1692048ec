#pragma once
// CIFAR-10 in its binary version: files of records. Each is one label byte and 3072 bytes of image
// (32x32, all red, all green, all blue, row by row).
// Source: Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009;
// https://www.cs.toronto.edu/~kriz/cifar.html, section "Binary version".

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

class Cifar10 final : public ImageDataset {
 public:
  static constexpr int64_t kClasses = 10;
  static constexpr ImageShape kShape{3, 32, 32};
  static constexpr int64_t kImageBytes = kShape.numel();
  static constexpr int64_t kRecordBytes = 1 + kImageBytes;

  /// Reads those of data_batch_1.bin .. data_batch_5.bin (kTrain) or test_batch.bin (kTest) that
  /// are in `dir`, in this order. It also looks into the sub-folder cifar-10-batches-bin, as the
  /// official archive has it. The files' sizes determine the number of records. Memory: the files'
  /// size.
  /// Errors: kNotFound (no such folder; none of the files), kIo (cannot be read), kCorrupt as
  /// append().
  static Cifar10 load(const std::filesystem::path& dir, Split split);

  /// Adds the records of one file. `file` names it in errors. Nothing is added on an error.
  /// Errors: kCorrupt if it is empty, ends within a record, or holds a label above 9; naming file
  /// and byte offset.
  void append(std::string_view bytes, const std::string& file);

  int64_t size() const override { return static_cast<int64_t>(records_.size()) / kRecordBytes; }
  ImageShape shape() const override { return kShape; }
  int64_t num_classes() const override { return kClasses; }
  int64_t label(int64_t index) const override { return records_[offset(index)]; }
  std::span<const uint8_t> image(int64_t index) const override {
    return {records_.data() + offset(index) + 1, static_cast<size_t>(kImageBytes)};
  }

 private:
  static size_t offset(int64_t index) { return static_cast<size_t>(index * kRecordBytes); }

  std::vector<uint8_t> records_;  // whole records, as in the files
};

/// Number of records that Cifar10::load() would read, by the files' sizes alone; 0 without files.
/// Errors: kIo, kCorrupt naming the file that is empty or ends within a record.
int64_t count_cifar10(const std::filesystem::path& dir, Split split);

/// "DIR lacks data_batch_3.bin: ..." if only some of the files of `split` exist: load() reads the
/// existing ones, which may be intended. Empty if none or all exist.
std::string missing_cifar10_warning(const std::filesystem::path& dir, Split split);

/// "data_batch_1.bin" .., "test_batch.bin", or both.
std::vector<std::string> cifar10_files(Split split);

/// `dir`, or its sub-folder cifar-10-batches-bin if only that holds one of the files of either
/// split; empty if neither does. Errors: kIo if `dir` exists but cannot be read.
std::filesystem::path find_cifar10(const std::filesystem::path& dir);

}  // namespace lockstep::inline internal
