#include "lockstep/ocr/synth/style.h"

#include <fmt/format.h>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::ocr {

SynthStyle synth_style(std::string_view difficulty) {
  if (difficulty == "easy") return {5, 0.05, 110, 0.4, 4, 85, 0.1, 6, 20};
  if (difficulty == "normal") return {};
  if (difficulty == "hard") return {28, 0.25, 40, 1.8, 20, 30, 0.5, 40, 10};
  const std::vector<std::string> known = {"easy", "normal", "hard"};
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown difficulty '{}'{} (known: easy, normal, hard)", difficulty,
                          did_you_mean(difficulty, known)));
}

}  // namespace lockstep::ocr
