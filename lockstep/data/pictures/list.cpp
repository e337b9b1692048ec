#include "lockstep/data/pictures/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "lockstep/base/file.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/index.h"
#include "lockstep/data/pictures/name_text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxListBytes = int64_t{4} << 30;
constexpr size_t kLookedFor = 100;  // a second on a slow file server

[[noreturn]] void bad_line(const std::string& where, const std::string& why) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", where, why));
}

constexpr std::string_view kBlanks = " \t";

/// One CSV field from `at`, which moves behind the comma that ends it, or past the end. Blanks
/// around it count only within quotes.
std::string csv_field(std::string_view line, size_t& at, const std::string& where) {
  const size_t begin = line.find_first_not_of(kBlanks, at);
  if (begin == std::string_view::npos || line[begin] != '"') {
    const size_t end = std::min(line.find(',', at), line.size());
    std::string field(trimmed(line.substr(at, end - at), kBlanks));
    at = end + 1;
    return field;
  }
  std::string field;
  for (at = begin + 1;; ++at) {
    if (at >= line.size()) bad_line(where, "a quote that does not end");
    if (line[at] == '"') {
      ++at;
      if (at >= line.size() || line[at] != '"') break;
    }
    field += line[at];
  }
  at = std::min(line.find_first_not_of(kBlanks, at), line.size());
  if (at < line.size() && line[at] != ',') bad_line(where, "text behind a field in quotes");
  ++at;
  return field;
}

ListLine two_fields(const std::vector<std::string>& fields, const std::string& where,
                    const char* form) {
  if (fields.size() != 2) {
    bad_line(where, fmt::format("{} fields; allowed: two, {}", fields.size(), form));
  }
  return {fields[0], fields[1]};
}

ListLine split_csv(std::string_view line, const std::string& where) {
  std::vector<std::string> fields;
  for (size_t at = 0; at <= line.size();) fields.push_back(csv_field(line, at, where));
  return two_fields(fields, where, "PATH,LABEL");
}

ListLine split_tsv(std::string_view line, const std::string& where) {
  std::vector<std::string> fields;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    fields.emplace_back(trimmed(line.substr(at, end - at), kBlanks));
    at = end + 1;
  }
  return two_fields(fields, where, "PATH<TAB>LABEL");
}

ListLine split_json(std::string_view line, const std::string& where) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) bad_line(where, "no JSON object");
  const auto path = json.find("path");
  const auto label = json.find("label");
  if (path == json.end() || !path->is_string()) bad_line(where, "no text with the key 'path'");
  if (label != json.end() && label->is_string()) return {*path, *label};
  if (label == json.end() || !label->is_number_integer()) {
    bad_line(where, "no text or whole number with the key 'label'");
  }
  return {*path, label->dump()};
}

bool is_heading(const ListLine& line) {
  const auto is_one_of = [](const std::string& text, std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), ascii_lower(text)) != words.end();
  };
  return is_one_of(line.picture, {"path", "image", "file", "filename"}) &&
         is_one_of(line.label, {"label", "class"});
}

/// The labels of a list: each different text once, with the line that has it first.
class Labels {
 public:
  struct Text {
    std::string text;
    int64_t line = 0;
  };

  int64_t number_of(const std::string& text, int64_t line) {
    const auto [found, is_new] = numbers_.emplace(text, std::ssize(texts_));
    if (is_new) texts_.push_back({text, line});
    if (!is_new && found->second == 0) first_repeats_ = true;
    return found->second;
  }
  const std::vector<Text>& texts() const { return texts_; }
  /// Whether several lines have the label of the first one.
  bool first_repeats() const { return first_repeats_; }

 private:
  bool first_repeats_ = false;
  std::vector<Text> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// A negative one is a number too, but of no class.
bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return all_digits(text);
}

/// Errors: kCorrupt if the first label, of one line, is a text that is none of `classes`, and all
/// others are numbers: it is of a heading.
void refuse_unknown_heading(const Labels& labels, const std::optional<PictureClasses>& classes,
                            const std::string& file) {
  const auto& texts = labels.texts();
  const bool others_are_numbers =
      texts.size() > 1 && std::all_of(texts.begin() + 1, texts.end(),
                                      [](const auto& one) { return is_whole_number(one.text); });
  if (!others_are_numbers || labels.first_repeats() || is_whole_number(texts[0].text)) return;
  if (classes && ClassNumbers(*classes).of_name(texts[0].text) >= 0) return;
  bad_line(fmt::format("{}:{}", file, texts[0].line),
           fmt::format("the label '{}', where all others are numbers: a heading is path,label",
                       texts[0].text));
}

PictureClasses classes_of(const Labels& labels, int64_t num_classes) {
  const auto& texts = labels.texts();
  const bool numbers = std::all_of(texts.begin(), texts.end(),
                                   [](const auto& one) { return is_whole_number(one.text); });
  if (numbers) return {num_classes};
  std::vector<std::string> names;
  for (const auto& one : texts) names.push_back(one.text);
  std::sort(names.begin(), names.end());
  return PictureClasses::named(std::move(names));
}

/// The class of each text of `labels`.
std::vector<int64_t> classes_of_texts(const Labels& labels, const PictureClasses& classes,
                                      const std::string& file) {
  const ClassNumbers numbers(classes);
  const auto& texts = labels.texts();
  const auto of_all = [&](const auto& number) {
    std::vector<int64_t> found;
    for (const auto& one : texts) found.push_back(number(one.text));
    return found;
  };
  auto by_name = of_all([&](const auto& text) { return numbers.of_name(text); });
  const auto missing = std::find(by_name.begin(), by_name.end(), -1);
  if (missing == by_name.end()) return by_name;
  auto by_number = of_all([&](const auto& text) { return numbers.of_number(text); });
  if (std::find(by_number.begin(), by_number.end(), -1) == by_number.end()) return by_number;
  const auto& first = texts[static_cast<size_t>(missing - by_name.begin())];
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}:{}: the data set {}", file, first.line,
                                                       numbers.no_class(first.text)));
}

/// Calls `found(line, number)` for each line that is more than white space.
template <typename Found>
void for_each_list_line(std::string_view text, const Found& found) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.find_first_not_of(kBlanks) != std::string_view::npos) found(line, number);
    at = end + 1;
  }
}

/// Two lines with the same picture: first numbers of pictures, then of lines.
struct ListedTwice {
  int64_t first = 0;
  int64_t again = 0;
};

/// A picture's name without steps such as "./" and "a/../", by which two names are compared.
std::string plain_name(std::string_view name) {
  const bool plain = !name.starts_with("./") && !name.starts_with("../") &&
                     name.find("//") == std::string::npos && name.find("/.") == std::string::npos;
  return plain ? std::string(name) : fs::path(name).lexically_normal().string();
}

/// The pictures that a list names more than once.
struct Repeats {
  int64_t count = 0;                    ///< Of lines that repeat a picture with its label.
  ListedTwice same;                     ///< The first of them.
  std::optional<ListedTwice> differ{};  ///< The first with another label; then `count` is not all.
};

size_t hash_of_name(std::string_view name) {
  return std::hash<std::string>()(plain_name(name));
}

/// The hashes that several names have, sorted. Next to always those names are equal. Memory: 8
/// bytes a name, which a table of millions of names would take many times.
std::vector<size_t> shared_hashes(const PictureIndex& index) {
  std::vector<size_t> hashes(static_cast<size_t>(index.size()));
  index.for_each_name([&](int64_t i, std::string_view name) {
    hashes[static_cast<size_t>(i)] = hash_of_name(name);
  });
  std::sort(hashes.begin(), hashes.end());
  std::vector<size_t> shared;
  for (size_t i = 1; i < hashes.size(); ++i) {
    const bool is_known = !shared.empty() && shared.back() == hashes[i];
    if (hashes[i] == hashes[i - 1] && !is_known) shared.push_back(hashes[i]);
  }
  return shared;
}

Repeats find_repeats(const PictureIndex& index) {
  Repeats repeats;
  const auto shared = shared_hashes(index);
  if (shared.empty()) return repeats;
  std::unordered_map<std::string, int64_t> firsts;
  for (int64_t i = 0; i < index.size(); ++i) {
    const std::string name = index.name(i);
    if (!std::binary_search(shared.begin(), shared.end(), hash_of_name(name))) continue;
    const auto [found, is_new] = firsts.emplace(plain_name(name), i);
    if (is_new) continue;
    const ListedTwice both{found->second, i};
    if (index.label(both.first) != index.label(i)) {
      repeats.differ = both;
      return repeats;
    }
    if (++repeats.count == 1) repeats.same = both;
  }
  return repeats;
}

ListedTwice lines_of(const ListedTwice& pictures, std::string_view text, int64_t headings) {
  ListedTwice lines;
  int64_t picture = -headings;
  for_each_list_line(text, [&](std::string_view, int64_t number) {
    if (picture == pictures.first) lines.first = number;
    if (picture == pictures.again) lines.again = number;
    ++picture;
  });
  return lines;
}

/// A picture with two labels is an error, one that is repeated with its label a warning.
void look_for_repeats(PictureIndex& index, const std::string& file, std::string_view text,
                      int64_t headings) {
  const Repeats repeats = find_repeats(index);
  if (repeats.differ) {
    const auto lines = lines_of(*repeats.differ, text, headings);
    const auto label_of = [&](int64_t picture) {
      const auto label = index.label(picture);
      const auto& names = index.classes().names;
      return names.empty() ? std::to_string(label) : names[static_cast<size_t>(label)];
    };
    bad_line(fmt::format("{}:{}", file, lines.again),
             fmt::format("{} has the label '{}', but '{}' at {}:{}; allowed: one for a picture",
                         index.name(repeats.differ->again), label_of(repeats.differ->again),
                         label_of(repeats.differ->first), file, lines.first));
  }
  if (repeats.count == 0) return;
  const auto lines = lines_of(repeats.same, text, headings);
  index.add_warning(fmt::format(
      "{}: {} of {} lines name a picture again, with the same label; the first: {}:{}: {}, as at "
      "line {}",
      file, repeats.count, index.size(), file, lines.again, index.name(repeats.same.again),
      lines.first));
}

void look_for_pictures(PictureIndex& index, const std::string& file) {
  const auto count = static_cast<size_t>(index.size());
  const size_t looked_for = std::min(count, kLookedFor);
  size_t missing = 0;
  fs::path first;
  for (size_t i = 0; i < looked_for; ++i) {
    const fs::path path = index.path(static_cast<int64_t>(i * count / looked_for));
    std::error_code ignored;
    if (!fs::exists(path, ignored) && ++missing == 1) first = path;
  }
  if (missing == 0) return;
  const std::string line =
      fmt::format("{}: {} of {} pictures looked for are missing; the first: {}", file, missing,
                  looked_for, first.string());
  if (missing == looked_for) throw Error(ErrorCode::kCorrupt, line);
  index.add_warning(line);
}

}  // namespace

ListFormat list_format(const fs::path& file) {
  const std::string end = file.extension().string();
  if (end == ".csv") return ListFormat::kCsv;
  if (end == ".tsv") return ListFormat::kTsv;
  if (end == ".jsonl" || end == ".ndjson") return ListFormat::kJsonLines;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: a list of pictures ends in .csv, .tsv, .jsonl or .ndjson", file.string()));
}

ListLine split_list_line(std::string_view line, ListFormat format, const std::string& where) {
  ListLine split = format == ListFormat::kCsv   ? split_csv(line, where)
                   : format == ListFormat::kTsv ? split_tsv(line, where)
                                                : split_json(line, where);
  if (split.picture.empty() || split.label.empty()) bad_line(where, "an empty path or label");
  if (split.picture.find('\0') != std::string::npos) bad_line(where, "a zero byte in a path");
  return split;
}

PictureIndex read_list(const fs::path& file, const ListOptions& options) {
  const ListFormat format = list_format(file);
  const std::string name = file.string();
  const std::string text = read_file(file, kMaxListBytes);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    bad_line(name, "UTF-16; save it as UTF-8");
  }
  Labels labels;
  PictureIndex lines(options.folder, {});  // its labels number the texts of `labels`
  int64_t headings = 0;
  for_each_list_line(text, [&](std::string_view line, int64_t number) {
    const auto split = split_list_line(line, format, fmt::format("{}:{}", name, number));
    if (lines.size() == 0 && format != ListFormat::kJsonLines && is_heading(split)) {
      ++headings;
      return;
    }
    lines.add(split.picture, labels.number_of(split.label, number));
  });
  if (lines.size() == 0) throw Error(ErrorCode::kCorrupt, fmt::format("{}: no picture", name));
  if (format != ListFormat::kJsonLines) refuse_unknown_heading(labels, options.classes, name);
  const PictureClasses classes = options.classes.value_or(classes_of(labels, options.num_classes));
  lines.classify(classes, classes_of_texts(labels, classes, name));
  lines.shrink();
  look_for_repeats(lines, name, text, headings);
  if (options.looks) look_for_pictures(lines, name);
  if (!options.names.empty()) lines.limit_memory(options.names);
  return lines;
}

}  // namespace lockstep::inline internal
