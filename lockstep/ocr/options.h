#pragma once
// Arguments of MindOCR's data sets, dictionaries, post-processing and metrics, under its names and
// with its defaults. Those of transforms are in transforms/options.h.

#include <cstdint>
#include <string>

namespace lockstep::ocr {

/// Selects the records of an LMDBDataset.
struct LmdbOptions {
  bool filter_max_len = false;          ///< Drops labels longer than max_text_len.
  bool extra_count_if_repeat = false;   ///< In that length an equal neighbour counts as one more.
  int64_t max_text_len = 0;             ///< With filter_max_len.
  bool filter_zero_text_image = false;  ///< Drops labels without known characters.
  std::string character_dict_path{};    ///< For filter_zero_text_image. Empty: 0-9 and a-z.
  bool label_standandize = false;       ///< Converts labels to Unicode's form NFKD. (Sic.)
  bool check_rec_image = false;  ///< Drops images of at most 6 pixels a side, and undecodable ones.
};

/// The dictionary arguments of RecCTCLabelEncode, RecCTCLabelDecode and RecMetric.
struct CharacterOptions {
  std::string character_dict_path{};  ///< Empty: 0-9 and a-z, lower case.
  bool use_space_char = false;
  bool blank_at_last = true;
  bool lower = false;
};

struct DbPostprocessOptions {
  enum class Box : uint8_t { kQuad, kPoly };
  double binary_thresh = 0.3;
  double box_thresh = 0.7;
  int max_candidates = 1000;
  double expand_ratio = 1.5;
  Box box_type = Box::kQuad;
};

struct DetMetricOptions {
  /// Ours: each ground truth takes one detection, as in the protocol of ICDAR 2015. MindOCR's takes
  /// all that match, and does not count the further ones as false.
  bool one_to_one = false;
};

struct RecMetricOptions {
  std::string character_dict_path;  ///< Empty: 0-9 and a-z.
  bool ignore_space = true;
  bool filter_ood = true;  ///< Ignores characters of the truth that the dictionary lacks.
  bool lower = true;
  bool ignore_symbol = false;  ///< Compares only letters, digits, '^' and Chinese characters.
  bool print_flag = false;
};

}  // namespace lockstep::ocr
