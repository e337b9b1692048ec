#pragma once
// Arguments of MindOCR's metrics, under its names and with its defaults.

#include <string>

namespace lockstep::ocr {

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
