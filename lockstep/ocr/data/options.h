#pragma once
// Arguments of MindOCR's data sets, under its names and with its defaults.

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

}  // namespace lockstep::ocr
