#pragma once
// SynthTextDataset of MindOCR: SynthText in the Wild, whose labels are one MATLAB file.
// Source: Gupta, Vedaldi, Zisserman, "Synthetic Data for Text Localisation in Natural Images",
// CVPR 2016; the data set's readme for the file's fields.

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/ocr/data/ocr_dataset.h"

namespace lockstep::ocr {

class SynthTextDataset final : public OcrDataset {
 public:
  /// Reads `imnames`, `wordBB` and `txt` of gt.mat (MATLAB's format 5 or 7.3, by libmatio). Images
  /// are looked up when they are loaded. Memory: about 100 bytes a word, and three times as much
  /// while reading; the published file has 7.3 million words. Errors: kNotFound, kCorrupt naming
  /// the file (a field is missing, of another kind, or of another length than the others).
  SynthTextDataset(const std::filesystem::path& data_dir, const std::filesystem::path& label_file);

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }

  /// Sets `regions`, none ignored; there is no `label`, so the pipeline has no DetLabelEncode.
  /// Error(kCorrupt): the numbers of boxes and texts differ.
  Sample load(int64_t index) const override;

 private:
  using Quad = std::array<float, 8>;  // x and y of four corners
  struct Record {
    std::string image;
    std::vector<Quad> boxes;
    std::vector<std::string> words;
  };

  std::filesystem::path dir_;
  std::string file_;
  std::vector<Record> records_;
};

}  // namespace lockstep::ocr
