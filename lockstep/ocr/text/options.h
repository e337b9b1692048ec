#pragma once

#include <string>

namespace lockstep::ocr {

/// What RecCTCLabelEncode, RecCTCLabelDecode and RecMetric say of a dictionary.
struct CharacterOptions {
  std::string character_dict_path{};  ///< Empty: 0-9 and a-z, lower case.
  bool use_space_char = false;
  bool blank_at_last = true;
  bool lower = false;
};

}  // namespace lockstep::ocr
