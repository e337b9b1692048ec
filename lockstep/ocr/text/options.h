#pragma once

#include <string>

namespace lockstep::ocr {

/// The dictionary arguments of RecCTCLabelEncode, RecCTCLabelDecode and RecMetric.
struct CharacterOptions {
  std::string character_dict_path{};  ///< Empty: 0-9 and a-z, lower case.
  bool use_space_char = false;
  bool blank_at_last = true;
  bool lower = false;
};

}  // namespace lockstep::ocr
