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
  // Editors add a byte order mark in front; the first character would otherwise never match.
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

EncodedText all_blank(const Dictionary& dictionary, int max_text_len, std::string remark) {
  return {std::vector<int32_t>(static_cast<size_t>(max_text_len), dictionary.blank()), 0,
          std::move(remark)};
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

EncodedText encode_text(const Dictionary& dictionary, std::string_view text, int max_text_len) {
  if (!is_utf8(text)) throw Error(ErrorCode::kCorrupt, "the text is not UTF-8");
  if (text.empty()) return all_blank(dictionary, max_text_len, "the text is empty");
  const int64_t count = count_characters(text);
  if (count > max_text_len) {
    return all_blank(dictionary, max_text_len,
                     fmt::format("'{}' has {} characters, more than max_text_len {}: trained as an "
                                 "empty text",
                                 for_message(text), count, max_text_len));
  }
  auto result = all_blank(dictionary, max_text_len, "");
  std::string dropped;
  const std::string folded = dictionary.lower() ? to_lower(text) : std::string(text);
  for (const auto character : characters(folded)) {
    const int32_t found = dictionary.find(character);
    if (found < 0) {
      dropped += character;
    } else {
      result.text_seq.at(static_cast<size_t>(result.length++)) = found;
    }
  }
  if (!dropped.empty()) {
    result.remark =
        fmt::format("'{}': not in the dictionary: '{}'{}", for_message(text), for_message(dropped),
                    result.length == 0 ? "; nothing is left" : "");
  }
  return result;
}

int64_t ctc_length(std::string_view text) {
  const auto all = characters(text);
  auto length = static_cast<int64_t>(all.size());
  for (size_t i = 1; i < all.size(); ++i) length += all[i] == all[i - 1] ? 1 : 0;
  return length;
}

}  // namespace lockstep::ocr
