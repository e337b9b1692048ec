#pragma once
// Arguments of MindOCR's metrics, under its names and with its defaults.

#include <string>

namespace lockstep::ocr {

struct DetMetricOptions {
  /// Ours: each ground truth takes one detection, as the protocol of ICDAR 2015 has it. MindOCR's
  /// takes all that fit, and does not count the further ones as false.
  bool one_to_one = false;
};

struct RecMetricOptions {
  std::string character_dict_path;  ///< Empty: 0-9 and a-z.
  bool ignore_space = true;
  bool filter_ood = true;  ///< Characters that the dictionary lacks do not count in the truth.
  bool lower = true;
  bool ignore_symbol = false;  ///< Only letters, digits, '^' and Chinese characters count.
  bool print_flag = false;
};

}  // namespace lockstep::ocr
