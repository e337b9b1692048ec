#pragma once
// DetDataset and RecDataset of MindOCR: label files beside folders of images. They differ only in
// the meaning of the label, which only the transforms use.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/data/line_file.h"
#include "lockstep/ocr/data/ocr_dataset.h"

namespace lockstep::ocr {

// MindOCR's label files: a line an image, "IMAGE<TAB>LABEL".

struct LabelLine {
  std::string image{};  ///< Relative to the data folder.
  std::string label{};  ///< Detection: a JSON list. Recognition: the text.
};

/// Splits one line, without surrounding white space, at its only tab, or, without a tab, at its
/// only blank. `where` ("FILE:LINE") begins every error: kCorrupt (no separator, more than one,
/// nothing beside it, not UTF-8, over 16 MiB).
LabelLine split_label_line(std::string_view line, const std::string& where);

/// The lists of samples, and their used part.
struct LabelFiles {
  std::vector<std::filesystem::path> data_dirs{};    ///< As many as label files, or one for all.
  std::vector<std::filesystem::path> label_files{};  ///< At least one.
  std::vector<double> sample_ratios = {1.0};         ///< In [0, 1]; as many as label files, or one.
  /// The part is drawn at random from (seed, index of the file), in that order, instead of the
  /// leading lines.
  bool shuffle = false;
  uint64_t seed = 0;
};

class LabelFileDataset final : public OcrDataset {
 public:
  /// Reads every line once and keeps its position: 24 bytes a line, one second for four million
  /// lines of a cached file. A line with a fault, or with a missing image, is a bad sample: `load`
  /// refuses it. MindOCR ends at the first one. `notes` reports bad lines, and missing images among
  /// up to 1,000 samples a file, spread evenly; only these are checked here. Errors:
  /// kInvalidArgument (numbers of entries do not fit, a ratio outside [0, 1], no sample left),
  /// kNotFound (label file), kIo. kCorrupt: every line of a label file is bad, or every checked
  /// image is missing; the folder or the format is then probably wrong.
  explicit LabelFileDataset(const LabelFiles& files);

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Sample load(int64_t index) const override;
  std::vector<std::string> notes() const override { return notes_; }

 private:
  struct Record {
    FileLine place;
    uint32_t file = 0;
  };
  struct Source {
    LineFile lines;
    std::filesystem::path data_dir;
  };

  void read(const std::filesystem::path& label_file, const std::filesystem::path& data_dir,
            double ratio, const LabelFiles& files);
  Sample parse(const Record& record, std::string_view line) const;
  void require_image(const Record& record, const Sample& sample) const;
  void look_for_images(size_t first);
  void note_bad_ones(const char* of, size_t bad, size_t all, const std::string& fault);

  std::vector<Source> sources_;
  std::vector<Record> records_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::ocr
