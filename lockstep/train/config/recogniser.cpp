#include <fmt/format.h>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

const ocr::RecCTCLabelEncode* find_encoder(const DatasetConfig& dataset) {
  for (const auto& transform : dataset.pipeline) {
    if (const auto* found = std::get_if<ocr::RecCTCLabelEncode>(&transform)) return found;
  }
  return nullptr;
}

std::string shown_dictionary(const ocr::CharacterOptions& characters) {
  return fmt::format(
      "character_dict_path {}, use_space_char {}",
      characters.character_dict_path.empty() ? "null" : characters.character_dict_path,
      characters.use_space_char ? "True" : "False");
}

/// What is taught must be read by the same dictionary.
void check_dictionary(const Config& config, const ocr::CharacterOptions& taught, Section& root) {
  const auto& read = std::get<ocr::CharacterOptions>(config.postprocess);
  if (read.character_dict_path == taught.character_dict_path &&
      read.use_space_char == taught.use_space_char) {
    return;
  }
  root.section("postprocess")
      .fail("character_dict_path",
            fmt::format("and use_space_char must be those of train's RecCTCLabelEncode: {}, not {}",
                        shown_dictionary(taught), shown_dictionary(read)));
}

}  // namespace

void check_recogniser(const Config& config, Section& root) {
  const auto* encoder = find_encoder(config.train.dataset);
  if (encoder == nullptr) return;  // check_columns() saw to it
  check_dictionary(config, encoder->characters, root);
  // A dictionary in a file is read when a run begins: check_dictionaries().
  if (encoder->characters.character_dict_path.empty()) {
    check_head_classes(config, encoder->characters, root);
  }
  const int64_t longest = std::get<CtcLossConfig>(config.loss).max_label_len;
  if (longest == encoder->max_text_len) return;
  root.section("loss").fail(
      "max_label_len",
      fmt::format("must be {}, the max_text_len of train's RecCTCLabelEncode, not {}",
                  encoder->max_text_len, longest));
}

}  // namespace lockstep
