#pragma once
// Arguments of MindOCR's data sets, under its names and with its defaults.

#include <cstdint>
#include <string>

namespace lockstep::ocr {

/// Which records of an LMDBDataset are used.
struct LmdbOptions {
  bool filter_max_len = false;          ///< Labels above max_text_len are left out.
  bool extra_count_if_repeat = false;   ///< In that length an equal neighbour counts as one more.
  int64_t max_text_len = 0;             ///< With filter_max_len.
  bool filter_zero_text_image = false;  ///< Labels without a character of the dictionary are, too.
  std::string character_dict_path{};    ///< For that. Empty: 0-9 and a-z.
  bool label_standandize = false;       ///< Labels are brought to Unicode's form NFKD. (Sic.)
  bool check_rec_image =
      false;  ///< Images of at most 6 pixels a side, or undecodable, are left out.
};

}  // namespace lockstep::ocr
