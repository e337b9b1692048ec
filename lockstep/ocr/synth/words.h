#pragma once

#include <string>

#include "lockstep/ocr/synth/dice.h"

namespace lockstep::ocr {

/// A text of 2 to 10 ASCII letters or digits. Half of them are common English words (lower case,
/// capitalised or upper case). The others are digits alone, upper case with digits, or mixed.
/// Strings without context exclude the characters that look alike in many fonts (0 O o, 1 I l).
std::string draw_text(Dice& dice);

}  // namespace lockstep::ocr
