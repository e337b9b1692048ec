#include "lockstep/ocr/text/dictionary.h"

#include <fmt/format.h>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

constexpr int64_t kMaxDictionaryBytes = 16 << 20;

std::vector<std::string> built_in_characters() {
  std::vector<std::string> result;
  for (const char c : std::string_view("0123456789abcdefghijklmnopqrstuvwxyz")) {
    result.emplace_back(1, c);
  }
  return result;
}

std::string_view without_line_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  return line;
}

std::vector<std::string> read_lines(std::string_view bytes, const std::string& file) {
  // Editors put a byte order mark in front; the first character would never be found.
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  std::vector<std::string> lines;
  std::unordered_map<std::string_view, size_t> first_at;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    const auto entry = without_line_end(bytes.substr(0, size));
    bytes.remove_prefix(size);
    const auto where = fmt::format("{}:{}", file, lines.size() + 1);
    if (!is_utf8(entry)) throw Error(ErrorCode::kCorrupt, where + ": not UTF-8");
    const auto [seen, is_new] = first_at.emplace(entry, lines.size() + 1);
    if (!is_new) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{}: '{}' stands on line {} already; a character has one class",
                              where, entry, seen->second));
    }
    lines.emplace_back(entry);
  }
  if (lines.empty()) throw Error(ErrorCode::kCorrupt, file + ": an empty dictionary");
  return lines;
}

}  // namespace

Dictionary::Dictionary(const CharacterOptions& options)
    : Dictionary(options.character_dict_path.empty()
                     ? Dictionary(built_in_characters(), options)
                     : parse(read_file(options.character_dict_path, kMaxDictionaryBytes),
                             options.character_dict_path, options)) {}

Dictionary Dictionary::parse(std::string_view bytes, const std::string& file,
                             const CharacterOptions& options) {
  return {read_lines(bytes, file), options};
}

Dictionary::Dictionary(std::vector<std::string> characters, const CharacterOptions& options)
    : entries_(std::move(characters)),
      lower_(options.lower || options.character_dict_path.empty()) {
  for (const auto& entry : entries_) {
    classes_.emplace(entry,
                     static_cast<int32_t>(classes_.size()) + (options.blank_at_last ? 0 : 1));
  }
  if (options.use_space_char && !contains(" ")) {
    classes_.emplace(" ", static_cast<int32_t>(entries_.size()) + (options.blank_at_last ? 0 : 1));
    entries_.emplace_back(" ");
  }
  blank_ = options.blank_at_last ? static_cast<int32_t>(entries_.size()) : 0;
  entries_.emplace(entries_.begin() + blank_);
}

int32_t Dictionary::find(std::string_view character) const {
  const auto found = classes_.find(character);
  return found == classes_.end() ? -1 : found->second;
}

}  // namespace lockstep::ocr
