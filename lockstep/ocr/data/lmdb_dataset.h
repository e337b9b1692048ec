#pragma once
// LMDBDataset of MindOCR: words in LMDB environments, under the keys num-samples,
// image-000000001 .. (an encoded image) and label-000000001 .. (its text).

#include <filesystem>
#include <vector>

#include "lockstep/ocr/data/lmdb_file.h"
#include "lockstep/ocr/data/ocr_dataset.h"
#include "lockstep/ocr/options.h"

namespace lockstep::ocr {

struct LmdbSets {
  std::vector<std::filesystem::path> data_dirs{};
  double sample_ratio = 1.0;  ///< Of all records together, in [0, 1].
  bool shuffle = false;       ///< The records are drawn from `seed` instead of the leading ones.
  uint64_t seed = 0;
  LmdbOptions options{};
};

class LmdbDataset final : public OcrDataset {
 public:
  /// Opens every folder below the data folders that has no sub-folder, in the order of their names;
  /// one that is no environment causes a warning.
  ///
  /// Cost: with filter_max_len or filter_zero_text_image each label is read. Memory: four bytes a
  /// record, or none without a filter, a ratio and shuffling. Errors: kInvalidArgument (no
  /// environment; no record left; a ratio outside [0, 1]), kNotFound (data folder; dictionary),
  /// kIo.
  explicit LmdbDataset(const LmdbSets& sets);

  int64_t size() const override { return num_records_; }
  /// The number of records of each environment, and of those that the filters drop.
  std::vector<std::string> notes() const override { return notes_; }
  Sample load(int64_t index) const override;

 private:
  struct Environment {
    LmdbFile file;
    int64_t begin = 0;  ///< Index of its first record among all environments.
  };
  struct Place {
    const LmdbFile& file;
    int64_t number;  ///< The number in its keys, from 1.
  };

  void open_below(const std::filesystem::path& dir);
  void open(const std::filesystem::path& dir);
  void choose(const LmdbSets& sets);
  void filter(const LmdbOptions& options);
  Place place(int64_t record) const;
  std::string label(const Place& place) const;

  std::vector<Environment> environments_;
  int64_t num_stored_ = 0;
  std::vector<uint32_t> chosen_;  // empty: all, in order
  int64_t num_records_ = 0;
  std::vector<std::string> notes_ = {"Number of LMDB records:"};
  bool standardize_ = false;
  int min_side_ = 1;
};

}  // namespace lockstep::ocr
