#pragma once
// MNIST, and Fashion-MNIST in the same form: a file of images and one of labels for training
// (train-), and two for testing (t10k-). Each is an idx file, plain or compressed by gzip (.gz).
// Source: LeCun, Cortes, Burges, "The MNIST database", section "File formats"; Xiao, Rasul,
// Vollgraf, "Fashion-MNIST", 2017.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

/// An idx file of unsigned bytes.
struct IdxFile {
  std::vector<int64_t> extents;
  std::string_view values;  ///< Of the bytes that were parsed.
};

/// The file with `num_extents` dimensions whose bytes are `bytes`; `file` names it in errors.
/// Errors: kCorrupt if it is another kind of file, cut short, or longer than its header has it.
IdxFile parse_idx(std::string_view bytes, size_t num_extents, const std::string& file);

/// The contents of a file of gzip. Errors: kCorrupt if it is damaged, cut short, or holds more than
/// `max_bytes`.
std::string gunzip(std::string_view bytes, const std::string& file, size_t max_bytes);

class Mnist final : public ImageDataset {
 public:
  enum class Kind : uint8_t { kDigits, kFashion };  ///< They differ in their folders and names.

  static constexpr int64_t kClasses = 10;
  static constexpr ImageShape kShape{1, 28, 28};
  static constexpr int64_t kImageBytes = kShape.numel();

  /// Reads the files of `split` that are in `dir`, or in its sub-folders raw or MNIST/raw (of
  /// Fashion-MNIST FashionMNIST/raw), as torchvision has them. Memory: that of the images. Errors:
  /// kNotFound (no such folder; none of the files; images without labels), kIo, kCorrupt as
  /// parse_idx(), gunzip() and append().
  static Mnist load(const std::filesystem::path& dir, Split split, Kind kind);

  struct NamedBytes {
    std::string_view bytes;
    const std::string& file;  ///< For errors.
  };
  /// Adds the images of a file of them and of one of their labels. Nothing is added on an error.
  /// Errors: kCorrupt if images are not 28 x 28, the files have different numbers of them, or a
  /// label is above 9.
  void append(const NamedBytes& images, const NamedBytes& labels);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  ImageShape shape() const override { return kShape; }
  int64_t num_classes() const override { return kClasses; }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  std::span<const uint8_t> image(int64_t index) const override {
    return {pixels_.data() + index * kImageBytes, static_cast<size_t>(kImageBytes)};
  }

 private:
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
};

/// Number of images that Mnist::load() would read, by the files of labels; 0 without files.
int64_t count_mnist(const std::filesystem::path& dir, Split split, Mnist::Kind kind);

/// As missing_cifar10_warning().
std::string missing_mnist_warning(const std::filesystem::path& dir, Split split, Mnist::Kind kind);

/// "0" .. "9", or "T-shirt/top" ..
const std::vector<std::string>& mnist_names(Mnist::Kind kind);

}  // namespace lockstep::inline internal
