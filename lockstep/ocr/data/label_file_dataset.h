#pragma once
// DetDataset and RecDataset of MindOCR: label files beside folders of images. They differ in what
// the label is, which concerns the transforms alone.

#include <filesystem>
#include <vector>

#include "lockstep/ocr/data/text_dataset.h"

namespace lockstep::ocr {

/// Where samples are listed, and which part of them is used.
struct LabelFiles {
  std::vector<std::filesystem::path> data_dirs{};    ///< As many as label files, or one for all.
  std::vector<std::filesystem::path> label_files{};  ///< At least one.
  std::vector<double> sample_ratios = {1.0};         ///< In [0, 1]; as many as label files, or one.
  /// The part is drawn at random from (seed, place of the file in the list), in that order, instead
  /// of the leading lines.
  bool shuffle = false;
  uint64_t seed = 0;
};

class LabelFileDataset final : public TextDataset {
 public:
  /// Reads the label files and looks for every image that is used. Memory: the files' size. A line
  /// with a fault and one whose image is missing is a bad sample: `load` refuses it, and `notes`
  /// has a line. MindOCR ends there. Errors: kInvalidArgument (numbers of entries do not fit, a
  /// ratio outside [0, 1], no sample left), kNotFound (label file), kCorrupt (every sample of a
  /// label file is bad: the data folder is wrong rather, or the format), kIo.
  explicit LabelFileDataset(const LabelFiles& files);

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Sample load(int64_t index) const override;
  std::vector<std::string> notes() const override { return notes_; }

 private:
  struct Record {
    std::string image;
    std::string label;  // of a bad sample: what is wrong
    uint32_t file = 0;
    uint32_t line = 0;
    bool bad = false;
  };
  void read(const std::filesystem::path& label_file, const std::filesystem::path& data_dir,
            double ratio, const LabelFiles& files);
  void note_bad_ones(size_t first);

  std::vector<std::string> names_;  // of the label files
  std::vector<Record> records_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::ocr
