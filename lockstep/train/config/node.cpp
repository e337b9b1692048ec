#include "lockstep/train/config/node.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::inline internal {

std::string to_string(const SourceLocation& location) {
  if (!location.source) return "default";
  return location.line > 0 ? fmt::format("{}:{}", *location.source, location.line)
                           : *location.source;
}

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node&>(*this).find(key));
}

Node Node::scalar(std::string text, bool quoted) {
  Node node;
  node.kind = Kind::kScalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

bool same_values(const Node& a, const Node& b) {
  const auto same_entry = [](const Node::Entry& x, const Node::Entry& y) {
    return x.key == y.key && same_values(x.value, y.value);
  };
  return a.kind == b.kind && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_values) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    same_entry);
}

}  // namespace lockstep::inline internal
