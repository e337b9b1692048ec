#pragma once
// A configuration as text: a tree of mappings, lists and scalars, each with its location
// in the source.

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// Where a value was written, for messages: "FILE:LINE", or "-o key=value" for an override.
struct SourceLocation {
  std::shared_ptr<const std::string> source;  ///< Null: the value is a default.
  int line = 0;                               ///< From 1; 0: the source has no lines.
};
std::string to_string(const SourceLocation& location);

/// One value. Scalars keep their text; the reader decides its meaning (number, flag, name).
struct Node {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  bool quoted = false;  ///< kScalar: written in quotes, so it is always a text.
  std::string text;     ///< kScalar.
  SourceLocation location;
  std::vector<Node> items;  ///< kList.
  /// kMap, in the order of the file; keys are unique. A list, so that a Section of one of them
  /// stays valid where its parent gets defaults.
  std::list<Entry> entries;

  /// The value under `key` of a mapping; null if the key is absent or this is no mapping.
  Node* find(std::string_view key);
  const Node* find(std::string_view key) const;

  static Node scalar(std::string text, bool quoted = false);
};

struct Node::Entry {
  std::string key;
  SourceLocation location;  ///< Of the key.
  Node value;
};

/// The scalar as YAML 1.1 reads it; false if it is another type (or quoted).
bool read_flag(const Node& node, bool* value);
bool read_whole(const Node& node, int64_t* value);
bool read_number(const Node& node, double* value);

/// Whether both trees have the same values, regardless of locations and quotes.
bool same_values(const Node& a, const Node& b);

}  // namespace lockstep::inline internal
