#include "lockstep/train/config/dictionaries.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/ocr/text/dictionary.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep::inline internal {
namespace {

/// The dictionary that `key` of `section` names.
ocr::Dictionary read_dictionary(const ConfigSection& section, const std::string& key,
                                const ocr::CharacterOptions& characters) {
  try {
    return ocr::Dictionary(characters);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: {}: {}", section.where(key), section.name_of(key), error.what()));
  }
}

/// Describes the classes: "d.txt has 90 characters and a space, and a blank".
std::string parts_of(const ocr::CharacterOptions& characters, int32_t classes) {
  auto plain = characters;
  plain.use_space_char = false;
  const int32_t own = ocr::Dictionary(plain).num_classes() - 1;
  const auto& path = characters.character_dict_path;
  return fmt::format("{} has {} characters{}, and a blank",
                     path.empty() ? "the built-in dictionary" : path, own,
                     own + 1 < classes ? " and a space" : "");
}

/// Checks the dictionary that filters records by their labels.
void check_filter(const DatasetConfig& dataset, const ConfigSection& section) {
  if (!dataset.lmdb.filter_zero_text_image) return;
  read_dictionary(section, "character_dict_path",
                  {.character_dict_path = dataset.lmdb.character_dict_path});
}

void check_pipeline(const DatasetConfig& dataset, const ConfigSection& section) {
  for (const auto& transform : dataset.pipeline) {
    const auto* encoder = std::get_if<ocr::RecCTCLabelEncode>(&transform);
    if (encoder != nullptr) {
      read_dictionary(section, "transform_pipeline", encoder->characters);
    }
  }
}

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
      yaml_flag(characters.use_space_char));
}

/// Training and evaluation must use the same dictionary.
void check_dictionary(const Config& config, const ocr::CharacterOptions& taught,
                      ConfigSection& root) {
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

void check_head_classes(const Config& config, const ocr::CharacterOptions& taught,
                        ConfigSection& root) {
  const int32_t wanted =
      read_dictionary(root.section("postprocess"), "character_dict_path", taught).num_classes();
  const int64_t given = config.model.head.out_channels;
  if (given == wanted) return;
  root.section("model").section("head").fail(
      "out_channels",
      fmt::format("must be {}, not {}: {}", wanted, given, parts_of(taught, wanted)));
}

void check_dictionaries(const Config& config) {
  const auto* characters = std::get_if<ocr::CharacterOptions>(&config.postprocess);
  if (characters == nullptr) return;
  Node tree = config.effective;
  ConfigSection root(tree, "");
  check_head_classes(config, *characters, root);
  if (config.metric.rec.filter_ood) {
    read_dictionary(root.section("metric"), "character_dict_path",
                    {.character_dict_path = config.metric.rec.character_dict_path});
  }
  check_filter(config.train.dataset, root.section("train").section("dataset"));
  if (!config.eval) return;
  const ConfigSection eval = root.section("eval").section("dataset");
  check_filter(config.eval->dataset, eval);
  check_pipeline(config.eval->dataset, eval);
}

void check_recogniser(Config& config, ConfigSection& root) {
  const auto* encoder = find_encoder(config.train.dataset);
  if (encoder == nullptr) return;  // check_columns() reports it
  check_dictionary(config, encoder->characters, root);
  // check_dictionaries() reads a dictionary file when a run begins.
  if (encoder->characters.character_dict_path.empty()) {
    check_head_classes(config, encoder->characters, root);
  }
  const auto* loss = std::get_if<CtcLossConfig>(&config.loss);
  if (loss == nullptr || loss->max_label_len == encoder->max_text_len) return;
  root.section("loss").fail(
      "max_label_len",
      fmt::format("must be {}, the max_text_len of train's RecCTCLabelEncode, not {}",
                  encoder->max_text_len, loss->max_label_len));
}

}  // namespace lockstep::inline internal
