#include "lockstep/checkpoint/timm_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::inline internal {
namespace {

/// The start of a name, and what stands in its place. In `timm` a # is a number. In `torchvision`
/// the numbers follow in their order: # is the number, = twice the number, + twice the number and
/// one. A stage of ConvNeXt and what is in front of it are numbered together there.
struct NameRule {
  std::string_view timm;
  std::string_view torchvision;
};

// The first that fits counts.
constexpr std::array<NameRule, 24> kNameRules = {{
    {"cls_token", "class_token"},
    {"pos_embed", "encoder.pos_embedding"},
    {"patch_embed.proj.", "conv_proj."},
    {"blocks.#.norm1.", "encoder.layers.encoder_layer_#.ln_1."},
    {"blocks.#.attn.qkv.", "encoder.layers.encoder_layer_#.self_attention.in_proj_"},
    {"blocks.#.attn.proj.", "encoder.layers.encoder_layer_#.self_attention.out_proj."},
    {"blocks.#.norm2.", "encoder.layers.encoder_layer_#.ln_2."},
    {"blocks.#.mlp.fc1.", "encoder.layers.encoder_layer_#.mlp.0."},
    {"blocks.#.mlp.fc2.", "encoder.layers.encoder_layer_#.mlp.3."},
    {"norm.", "encoder.ln."},
    {"encoder.layers.encoder_layer_#.mlp.linear_1.", "encoder.layers.encoder_layer_#.mlp.0."},
    {"encoder.layers.encoder_layer_#.mlp.linear_2.", "encoder.layers.encoder_layer_#.mlp.3."},
    {"stem.0.", "features.0.0."},
    {"stem.1.", "features.0.1."},
    {"stages.#.downsample.0.", "features.=.0."},
    {"stages.#.downsample.1.", "features.=.1."},
    {"stages.#.blocks.#.gamma", "features.+.#.layer_scale"},
    {"stages.#.blocks.#.conv_dw.", "features.+.#.block.0."},
    {"stages.#.blocks.#.norm.", "features.+.#.block.2."},
    {"stages.#.blocks.#.mlp.fc1.", "features.+.#.block.3."},
    {"stages.#.blocks.#.mlp.fc2.", "features.+.#.block.5."},
    {"head.norm.", "classifier.0."},
    {"head.fc.", "classifier.2."},
    {"head.", "heads.head."},
}};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// A name that begins as a rule says.
struct RuleMatch {
  std::vector<uint64_t> numbers;
  std::string_view rest;
};

std::optional<RuleMatch> match_rule(std::string_view pattern, std::string_view name) {
  constexpr size_t kMostDigits = 4;
  RuleMatch match;
  for (const char expected : pattern) {
    if (name.empty()) return std::nullopt;
    if (expected != '#') {
      if (name[0] != expected) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < name.size() && is_digit(name[digits]); ++digits) {
      number = 10 * number + static_cast<uint64_t>(name[digits] - '0');
    }
    if (digits == 0 || digits > kMostDigits) return std::nullopt;
    match.numbers.push_back(number);
    name.remove_prefix(digits);
  }
  match.rest = name;
  return match;
}

std::string renamed(std::string_view pattern, const RuleMatch& match) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '#') {
      name += std::to_string(match.numbers[next++]);
    } else if (c == '=' || c == '+') {
      name += std::to_string(2 * match.numbers[next++] + (c == '+' ? 1 : 0));
    } else {
      name += c;
    }
  }
  return name.append(match.rest);
}

/// Blocks of timm's MobileNets and EfficientNets. A widening one begins with a convolution of 1 x 1
/// pixels, a separable one with that of each channel. A plain one is a convolution.
enum class MobileKind { kSeparable, kWidening, kPlain };

struct MobileBlock {
  MobileKind kind = MobileKind::kSeparable;
  bool squeezes = false;
  uint64_t number = 0;  ///< Among all blocks, from 0.
};

/// A part of such a block.
struct MobilePart {
  std::string_view timm;
  int number;          ///< torchvision's, in a block without squeezing.
  bool after_squeeze;  ///< One more in a block with it.
  std::string_view torchvision;
};

constexpr std::array<MobilePart, 6> kSeparableParts = {{{"conv_dw.", 0, false, "0."},
                                                        {"bn1.", 0, false, "1."},
                                                        {"se.conv_reduce.", 1, false, "fc1."},
                                                        {"se.conv_expand.", 1, false, "fc2."},
                                                        {"conv_pw.", 1, true, "0."},
                                                        {"bn2.", 1, true, "1."}}};
constexpr std::array<MobilePart, 8> kWideningParts = {{{"conv_pw.", 0, false, "0."},
                                                       {"bn1.", 0, false, "1."},
                                                       {"conv_dw.", 1, false, "0."},
                                                       {"bn2.", 1, false, "1."},
                                                       {"se.conv_reduce.", 2, false, "fc1."},
                                                       {"se.conv_expand.", 2, false, "fc2."},
                                                       {"conv_pwl.", 2, true, "0."},
                                                       {"bn3.", 2, true, "1."}}};
constexpr std::array<MobilePart, 2> kPlainParts = {
    {{"conv.", 0, false, ""}, {"bn1.", 1, false, ""}}};

std::span<const MobilePart> parts_of(MobileKind kind) {
  if (kind == MobileKind::kPlain) return kPlainParts;
  if (kind == MobileKind::kWidening) return kWideningParts;
  return kSeparableParts;
}

constexpr std::string_view kBlock = "blocks.#.#.";
constexpr std::string_view kMobileStem = "conv_stem.weight";

/// Names of one file of a MobileNetV3 or an EfficientNet.
class MobileNames {
 public:
  explicit MobileNames(const std::vector<std::string>& file) {
    for (const std::string& name : file) {
      if (name == "bn2.weight") by_stage_ = true;
      if (const auto match = match_rule(kBlock, name)) look_at(*match);
    }
    uint64_t next = 0;
    for (auto& [place, block] : blocks_) block.number = next++;
  }

  /// `name`: one of the file.
  std::string operator()(std::string_view name) const {
    if (const auto match = match_rule(kBlock, name)) return in_block(*match);
    const uint64_t last = blocks_.empty() ? 0 : blocks_.rbegin()->first.first + 2;
    const std::array<std::pair<std::string_view, std::string>, 5> ends = {
        {{"conv_stem.", "features.0.0."},
         {"bn1.", "features.0.1."},
         {"conv_head.", by_stage_ ? fmt::format("features.{}.0.", last) : "classifier.0."},
         {"bn2.", fmt::format("features.{}.1.", last)},
         {"classifier.", by_stage_ ? "classifier.1." : "classifier.3."}}};
    for (const auto& [timm, torchvision] : ends) {
      if (name.starts_with(timm)) return torchvision + std::string(name.substr(timm.size()));
    }
    return "";
  }

 private:
  using Place = std::pair<uint64_t, uint64_t>;  ///< Stage, block in it.

  static Place place_of(const RuleMatch& match) { return {match.numbers[0], match.numbers[1]}; }

  void look_at(const RuleMatch& match) {
    MobileBlock& block = blocks_[place_of(match)];
    if (match.rest.starts_with("conv_pwl.")) block.kind = MobileKind::kWidening;
    if (match.rest.starts_with("conv.")) block.kind = MobileKind::kPlain;
    if (match.rest.starts_with("se.")) block.squeezes = true;
  }

  std::string in_block(const RuleMatch& match) const {
    const auto [stage, index] = place_of(match);
    const MobileBlock& block = blocks_.at({stage, index});
    const std::string place =
        by_stage_ ? fmt::format("{}.{}", stage + 1, index) : fmt::format("{}", block.number + 1);
    const char* inside = block.kind == MobileKind::kPlain ? "" : "block.";
    for (const MobilePart& part : parts_of(block.kind)) {
      if (!match.rest.starts_with(part.timm)) continue;
      const int number = part.number + (part.after_squeeze && block.squeezes ? 1 : 0);
      return fmt::format("features.{}.{}{}.{}{}", place, inside, number, part.torchvision,
                         match.rest.substr(part.timm.size()));
    }
    return "";
  }

  std::map<Place, MobileBlock> blocks_;
  bool by_stage_ = false;  ///< An EfficientNet: torchvision numbers stages, and blocks in them.
};

}  // namespace

std::string torchvision_name(std::string_view name) {
  for (const NameRule& rule : kNameRules) {
    if (const auto match = match_rule(rule.timm, name)) return renamed(rule.torchvision, *match);
  }
  return "";
}

std::vector<std::string> torchvision_names(const std::vector<std::string>& file) {
  std::vector<std::string> names;
  if (std::find(file.begin(), file.end(), kMobileStem) == file.end()) {
    for (const std::string& name : file) names.push_back(torchvision_name(name));
    return names;
  }
  const MobileNames of_mobile(file);
  for (const std::string& name : file) names.push_back(of_mobile(name));
  return names;
}

}  // namespace lockstep::inline internal
