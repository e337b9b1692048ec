#include "lockstep/checkpoint/timm_names.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

/// The start of a name, and what stands in its place. In `timm` a # is a number. In `torchvision`
/// the numbers follow in their order: # is the number, = twice the number, + twice the number and
/// one: a stage of ConvNeXt and what is in front of it are numbered together there.
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

}  // namespace

std::string torchvision_name(std::string_view name) {
  for (const NameRule& rule : kNameRules) {
    if (const auto match = match_rule(rule.timm, name)) return renamed(rule.torchvision, *match);
  }
  return "";
}

}  // namespace lockstep
