#include "lockstep/train/config/overrides.h"

#include <fmt/format.h>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep::inline internal {
namespace {

void move_to(Node& node, const SourceLocation& location) {
  node.location = location;
  for (auto& item : node.items) move_to(item, location);
  for (auto& entry : node.entries) {
    entry.location = location;
    move_to(entry.value, location);
  }
}

Node& child(Node& parent, const std::string& key, const SourceLocation& location) {
  if (parent.kind == Node::Kind::kNull) parent.kind = Node::Kind::kMap;
  if (Node* found = parent.find(key)) return *found;
  parent.entries.push_back({key, location, Node()});
  parent.entries.back().value.location = location;
  return parent.entries.back().value;
}

void apply(Node& root, const std::string& item, const std::string& from) {
  const std::string name = from + item;
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", name, why));
  };
  const size_t cut = item.find('=');
  if (cut == std::string::npos || cut == 0) fail("an override has the form key.sub=value");
  const auto keys = split(item.substr(0, cut), '.');
  if (keys.front() == "common") {
    fail("changes nothing, the names of 'common' are resolved already; set the keys that use it");
  }
  const SourceLocation location{std::make_shared<const std::string>(name), 0};
  Node value = parse_yaml(item.substr(cut + 1), name);
  move_to(value, location);
  Node* node = &root;
  for (const auto& key : keys) {
    if (key.empty()) fail("an override has the form key.sub=value");
    if (node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) {
      fail(fmt::format("'{}' cannot be set, its parent is no mapping", key));
    }
    node = &child(*node, key, location);
  }
  *node = std::move(value);
}

std::string expanded(const Node& node) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: '{}': {}", to_string(node.location), node.text, why));
  };
  std::string result;
  size_t done = 0;
  for (size_t at; (at = node.text.find("${", done)) != std::string::npos;) {
    const size_t end = node.text.find('}', at);
    if (end == std::string::npos) fail("'${' has no '}'; allowed: ${NAME}, ${NAME:-default}");
    const std::string inner = node.text.substr(at + 2, end - at - 2);
    const size_t cut = inner.find(":-");
    const std::string name = inner.substr(0, cut);
    auto value = name.empty() ? std::nullopt : env(name.c_str());
    if (!value && cut != std::string::npos) value = inner.substr(cut + 2);
    if (!value) fail(fmt::format("the environment variable {} is not set", name));
    result += node.text.substr(done, at - done) + *value;
    done = end + 1;
  }
  return result + node.text.substr(done);
}

}  // namespace

void expand_variables(Node& root) {
  if (root.kind == Node::Kind::kScalar && root.text.find("${") != std::string::npos) {
    root.text = expanded(root);
  }
  for (auto& item : root.items) expand_variables(item);
  for (auto& entry : root.entries) expand_variables(entry.value);
}

void apply_overrides(Node& root, std::span<const std::string> items, const std::string& from) {
  for (const auto& item : items) apply(root, item, from);
}

}  // namespace lockstep::inline internal
