#include "lockstep/train/config/config_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep::inline internal {
namespace {

template <typename T>
bool read_plain(const Node& node, T* value) {
  if (node.kind != Node::Kind::kScalar || node.quoted) return false;
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = as_number<T>(text);
  if (number) *value = *number;
  return number.has_value();
}

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a mapping";
    case Node::Kind::kScalar:
      break;
  }
  return fmt::format("'{}'", shortened(node.text, 80));
}

}  // namespace

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool read_flag(const Node& node, bool* value) {
  static const std::vector<std::string> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                 "YES",  "on",   "On",   "ON"};
  static const std::vector<std::string> kFalse = {"false", "False", "FALSE", "no", "No",
                                                  "NO",    "off",   "Off",   "OFF"};
  if (node.kind != Node::Kind::kScalar || node.quoted) return false;
  *value = contains(kTrue, node.text);
  return *value || contains(kFalse, node.text);
}

bool read_whole(const Node& node, int64_t* value) {
  return read_plain(node, value);
}

bool read_number(const Node& node, double* value) {
  return read_plain(node, value) && std::isfinite(*value);
}

}  // namespace lockstep::inline internal

namespace lockstep {

Section::Section(Node& node, std::string path, std::vector<Setting>* settings)
    : node_(&node), path_(std::move(path)), settings_(settings) {
  if (node.kind == Node::Kind::kNull) node.kind = Node::Kind::kMap;
  if (node.kind == Node::Kind::kMap) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} must be a mapping, not {}", to_string(node.location),
                          path_.empty() ? "the configuration" : path_, shown(node)));
}

std::string Section::name_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

std::string Section::where(const std::string& key) const {
  const Node* found = node_->find(key);
  return to_string(found != nullptr ? found->location : node_->location);
}

void Section::fail(const std::string& key, const std::string& why) const {
  const std::string name = key.empty() ? path_ + ":" : name_of(key);
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} {}", where(key), name, why));
}

void Section::wrong(const std::string& key, const Node& node, const std::string& must) const {
  fail(key, fmt::format("must be {}, not {}", must, shown(node)));
}

bool Section::has(const std::string& key) const {
  const Node* found = node_->find(key);
  return found != nullptr && found->kind != Node::Kind::kNull;
}

bool Section::present(const std::string& key) const {
  return node_->find(key) != nullptr;
}

Node* Section::any(const std::string& key) {
  if (!contains(known_, key)) known_.push_back(key);
  return node_->find(key);
}

Node* Section::value(const std::string& key) {
  Node* found = any(key);
  return found != nullptr && found->kind != Node::Kind::kNull ? found : nullptr;
}

void Section::fill(const std::string& key, Node node) {
  if (Node* found = node_->find(key)) {
    *found = std::move(node);
  } else {
    node_->entries.push_back({key, {}, std::move(node)});
  }
}

std::string Section::kind_of(Range<int64_t> range) {
  return fmt::format("a whole number from {} to {}", range.lo, range.hi);
}

std::string Section::kind_of(Range<double> range) {
  return fmt::format("a number from {} to {}", range.lo, range.hi);
}

std::string Section::list_kind(size_t count, bool whole, Range<double> range) {
  return fmt::format("a list of {} {}numbers from {} to {}", count, whole ? "whole " : "", range.lo,
                     range.hi);
}

std::string Section::shown_list(const std::vector<double>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

void Section::require(const std::string& key, const std::string& why) {
  required_.push_back(key);
  if (!has(key) && settings_ == nullptr) missing(key, why);
}

void Section::record(const std::string& key, const std::string& kind, const std::string& fallback,
                     const std::string& about) {
  if (settings_ == nullptr || about.empty()) return;
  Setting setting{path_, key, kind, fallback, about};
  if (contains(required_, key) && !setting.is_required()) setting.fallback = "required";
  settings_->push_back(std::move(setting));
}

void Section::read(const std::string& key, bool& value, const std::string& about) {
  const std::string fallback = yaml_flag(value);
  record(key, "True or False", fallback, about);
  const Node* node = this->value(key);
  if (node == nullptr) return fill(key, Node::scalar(fallback));
  if (!read_flag(*node, &value)) wrong(key, *node, "True or False");
}

void Section::read(const std::string& key, int64_t& value, Range<int64_t> range,
                   const std::string& about) {
  const auto must = kind_of(range);
  record(key, must, std::to_string(value), about);
  const Node* node = this->value(key);
  if (node == nullptr) return fill(key, Node::scalar(std::to_string(value)));
  if (!read_whole(*node, &value) || value < range.lo || value > range.hi) wrong(key, *node, must);
}

void Section::read(const std::string& key, int& value, Range<int> range, const std::string& about) {
  int64_t wide = value;
  read(key, wide, {range.lo, range.hi}, about);
  value = static_cast<int>(wide);
}

void Section::read(const std::string& key, double& value, Range<double> range,
                   const std::string& about) {
  const auto must = kind_of(range);
  record(key, must, yaml_number(value), about);
  const Node* node = this->value(key);
  if (node == nullptr) return fill(key, Node::scalar(yaml_number(value)));
  if (!read_number(*node, &value) || value < range.lo || value > range.hi) wrong(key, *node, must);
}

void Section::read(const std::string& key, std::string& value, const std::string& about) {
  record(key, "a text", value, about);
  value = text(key, value);
}

void Section::read(const std::string& key, std::optional<bool>& value, const std::string& about) {
  const Node* node = this->value(key);
  record(key, "True or False", "", about);
  if (node == nullptr) return;
  if (!read_flag(*node, &value.emplace())) wrong(key, *node, "True or False");
}

void Section::read(const std::string& key, std::vector<int64_t>& value, Range<int64_t> range,
                   const std::string& about) {
  const auto must = fmt::format("a list of whole numbers from {} to {}", range.lo, range.hi);
  record(key, must, "", about);
  const Node* node = this->value(key);
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kList) wrong(key, *node, must);
  value.resize(node->items.size());
  for (size_t i = 0; i < value.size(); ++i) {
    const Node& item = node->items[i];
    const bool right = read_whole(item, &value[i]) && value[i] >= range.lo && value[i] <= range.hi;
    if (!right) wrong(key, item, must);
  }
}

void Section::read(const std::string& key, std::vector<std::string>& value,
                   const std::string& about) {
  record(key, "a text or a list of texts", "", about);
  if (this->value(key) != nullptr) value = texts(key);
}

std::string Section::text(const std::string& key, const std::string& fallback) {
  const Node* node = value(key);
  if (node == nullptr) {
    if (!fallback.empty() || !present(key)) {
      fill(key, fallback.empty() ? Node() : Node::scalar(fallback));
    }
    return fallback;
  }
  if (node->kind != Node::Kind::kScalar) wrong(key, *node, "a text");
  return node->text;
}

void Section::choose(const std::string& key, std::string& value,
                     const std::vector<std::string>& names, const std::string& about) {
  value = choice(key, value, names, about);
}

std::string Section::choice(const std::string& key, const std::string& fallback,
                            const std::vector<std::string>& names, const std::string& about) {
  record(key, fmt::format("{}", fmt::join(names, ", ")), fallback, about);
  std::string result = text(key, fallback);
  if (result == fallback || contains(names, result)) return result;
  fail(key, fmt::format("must be one of {}, not '{}'{}", fmt::join(names, ", "), result,
                        did_you_mean(result, names)));
}

std::vector<double> Section::number_or_list(const std::string& key) {
  const Node* node = value(key);
  if (node == nullptr) return {};
  const bool list = node->kind == Node::Kind::kList;
  std::vector<double> result(list ? node->items.size() : 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const Node& item = list ? node->items[i] : *node;
    if (!read_number(item, &result[i])) wrong(key, item, "a number or a list of numbers");
  }
  return result;
}

void Section::check_list(const std::string& key, const std::vector<double>& numbers, size_t count,
                         bool whole, Range<double> range) {
  bool right = numbers.size() == count;
  for (const double number : numbers) {
    right = right && number >= range.lo && number <= range.hi &&
            (!whole || number == std::floor(number));
  }
  if (right) return;
  fail(key, "must be " + list_kind(count, whole, range));
}

std::vector<std::string> Section::texts(const std::string& key) {
  const Node* node = value(key);
  if (node == nullptr) return {};
  if (node->kind == Node::Kind::kScalar) return {node->text};
  if (node->kind != Node::Kind::kList) wrong(key, *node, "a text or a list of texts");
  std::vector<std::string> result;
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::kScalar) wrong(key, item, "a text or a list of texts");
    result.push_back(item.text);
  }
  return result;
}

void Section::refuse_misspelt(const std::string& key) const {
  for (const auto& entry : node_->entries) {
    if (entry.key == key || contains(known_, entry.key)) continue;
    const std::vector<std::string> meant = {key};
    const std::string near = did_you_mean(entry.key, meant);
    if (!near.empty()) unknown(to_string(entry.location), entry.key, near);
  }
}

void Section::missing(const std::string& key, const std::string& why) const {
  refuse_misspelt(key);
  fail(key, why);
}

Section Section::section(const std::string& key) {
  if (any(key) == nullptr) {
    refuse_misspelt(key);
    Node empty;
    empty.kind = Node::Kind::kMap;
    empty.location = node_->location;
    fill(key, std::move(empty));
  }
  return Section(*node_->find(key), name_of(key), settings_);
}

/// ", did you mean 'X'?" for a similar known key, or for the sub-section that has `key`.
std::string Section::hint(const std::string& key) const {
  std::string near = did_you_mean(key, known_);
  if (!near.empty()) return near;
  for (const auto& [name, place, value] : node_->entries) {
    if (value.find(key) == nullptr || !contains(known_, name)) continue;
    return fmt::format(", did you mean '{}.{}'?", name_of(name), key);
  }
  return "";
}

void Section::finish() const {
  for (const auto& entry : node_->entries) {
    if (contains(known_, entry.key)) continue;
    unknown(to_string(entry.location), entry.key, hint(entry.key));
  }
}

void Section::unknown(const std::string& place, const std::string& key,
                      const std::string& hint) const {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: unknown key '{}'{}", place, name_of(key), hint));
}

}  // namespace lockstep

namespace lockstep::inline internal {

void ConfigSection::only(const std::string& key, const std::vector<std::string>& values,
                         const std::string& why) {
  const Node* node = any(key);
  if (node == nullptr) return;
  const bool scalar = node->kind == Node::Kind::kScalar;
  if (scalar || node->kind == Node::Kind::kNull) {
    bool flag = false;
    const std::string text = scalar && read_flag(*node, &flag) ? yaml_flag(flag)
                             : scalar                          ? node->text
                                                               : "";
    if (contains(values, text)) return;
  }
  fail(key, fmt::format("cannot be {}: {}", shown(*node), why));
}

void ConfigSection::refuse_wrong_name(const std::string& wrong, const std::string& right) const {
  for (const auto& entry : node_->entries) {
    if (entry.key == wrong)
      unknown(to_string(entry.location), entry.key, fmt::format(", did you mean '{}'?", right));
  }
}

void ConfigSection::expect(const std::vector<std::string>& keys,
                           const std::function<std::string(const std::string& key)>& elsewhere) {
  known_ = keys;
  for (const auto& entry : node_->entries) {
    if (contains(known_, entry.key)) continue;
    const std::string near = hint(entry.key);
    unknown(to_string(entry.location), entry.key,
            near.empty() && elsewhere ? elsewhere(entry.key) : near);
  }
}

}  // namespace lockstep::inline internal
