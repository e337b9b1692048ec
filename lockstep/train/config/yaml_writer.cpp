#include "lockstep/train/config/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

/// Only unambiguous text goes without quotes.
bool plain_is_safe(const std::string& text) {
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '+' || c == '-';
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), harmless)) return false;
  return text[0] != '-' || (text.size() > 1 && (std::isdigit(text[1]) != 0 || text[1] == '.'));
}

std::string scalar_text(const std::string& text, bool quote) {
  return quote || !plain_is_safe(text) ? double_quoted(text) : text;
}

/// Entries do not record quotes of their key; without quotes these would be no text.
std::string key_text(const std::string& key) {
  return scalar_text(key, key == "null" || key == "Null" || key == "NULL");
}

bool is_simple(const Node& node) {
  return node.kind == Node::Kind::kScalar || node.kind == Node::Kind::kNull ||
         (node.kind == Node::Kind::kMap && node.entries.empty()) ||
         (node.kind == Node::Kind::kList &&
          std::all_of(node.items.begin(), node.items.end(), is_simple));
}

std::string simple_text(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  if (node.kind == Node::Kind::kMap) return "{}";
  if (node.kind == Node::Kind::kScalar) return scalar_text(node.text, node.quoted);
  std::string out = "[";
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += ", ";
    out += simple_text(node.items[i]);
  }
  out += ']';
  return out;
}

/// `after_dash`: the first line goes on behind the dash of a list.
void write(const Node& node, int indent, bool after_dash, std::string& out) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  const auto write_one = [&](const std::string& head, const Node& value, bool in_list) {
    if (!std::exchange(after_dash, false)) out += margin;
    out += head;
    if (is_simple(value)) {
      out += fmt::format(" {}\n", simple_text(value));
    } else {
      out += in_list ? " " : "\n";
      write(value, indent + 2, in_list, out);
    }
  };
  for (const auto& entry : node.entries) write_one(key_text(entry.key) + ":", entry.value, false);
  for (const auto& item : node.items) write_one("-", item, true);
}

}  // namespace

std::string write_yaml(const Node& root) {
  if (is_simple(root)) return fmt::format("{}\n", simple_text(root));
  std::string out;
  write(root, 0, false, out);
  return out;
}

std::string yaml_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') != std::string::npos) return text;
  const size_t exponent = text.find('e');
  return text.insert(std::min(exponent, text.size()), ".0");
}

const char* yaml_flag(bool value) {
  return value ? "True" : "False";
}

}  // namespace lockstep::inline internal
