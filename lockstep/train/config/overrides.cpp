#include "lockstep/train/config/overrides.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep {
namespace {

void move_to(Node& node, const Place& place) {
  node.place = place;
  for (auto& item : node.items) move_to(item, place);
  for (auto& entry : node.entries) {
    entry.place = place;
    move_to(entry.value, place);
  }
}

Node& child(Node& parent, const std::string& key, const Place& place) {
  if (parent.kind == Node::Kind::kNull) parent.kind = Node::Kind::kMap;
  if (Node* found = parent.find(key)) return *found;
  parent.entries.push_back({key, place, Node()});
  parent.entries.back().value.place = place;
  return parent.entries.back().value;
}

void apply(Node& root, const std::string& item) {
  const std::string name = "-o " + item;
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", name, why));
  };
  const size_t cut = item.find('=');
  if (cut == std::string::npos || cut == 0) fail("an override has the form key.sub=value");
  const auto keys = split(item.substr(0, cut), '.');
  if (keys.front() == "common") {
    fail("changes nothing, the names of 'common' are resolved already; set the keys that use it");
  }
  const Place place{std::make_shared<const std::string>(name), 0};
  Node value = parse_yaml(item.substr(cut + 1), name);
  move_to(value, place);
  Node* node = &root;
  for (const auto& key : keys) {
    if (key.empty()) fail("an override has the form key.sub=value");
    if (node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) {
      fail(fmt::format("'{}' cannot be set, what holds it is no mapping", key));
    }
    node = &child(*node, key, place);
  }
  *node = std::move(value);
}

}  // namespace

void apply_overrides(Node& root, std::span<const std::string> items) {
  for (const auto& item : items) apply(root, item);
}

}  // namespace lockstep
