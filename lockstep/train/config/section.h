#pragma once
// Typed reading of one mapping of the configuration. Every key is asked for by name, together with
// the variable that takes its value, its bounds and a line about it; a key that was not asked for
// is an error. The default is what the variable holds already. A key that is absent is filled in
// with it, so that the tree becomes the effective configuration; and each call can be recorded, so
// that the tables of docs/reference/settings.md come from these calls, too.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/train/config/node.h"

namespace lockstep {

/// A key as its reader describes it.
struct Setting {
  std::string section;  ///< Full name, "train.loader".
  std::string key;
  std::string kind;      ///< "a number from 0 to 1", "one of top_k, latest_k".
  std::string fallback;  ///< As the effective file has it; "required" where there is none.
  std::string about;     ///< One line.
};
using Settings = std::vector<Setting>;

/// Both ends are allowed.
template <typename T>
struct Range {
  T lo;
  T hi;
};

/// A value by the name that the file has for it.
template <typename T>
struct Named {
  const char* name;
  T value;
};

/// Errors of every call: kInvalidArgument "PLACE: PATH.KEY must be ..., not '...'".
class Section {
 public:
  /// `path` is the section's full name ("train.loader", empty for the whole file). A null node
  /// becomes an empty mapping; anything else that is no mapping is an error. `settings`, if any,
  /// gets a record of each key that is read here and in sub-sections.
  Section(Node& node, std::string path, Settings* settings = nullptr);

  // Each reads `key` into `value`, which keeps what it holds where the key is absent or null.
  void read(const std::string& key, bool& value, const std::string& about);
  void read(const std::string& key, int64_t& value, Range<int64_t> range, const std::string& about);
  void read(const std::string& key, int& value, Range<int> range, const std::string& about);
  void read(const std::string& key, double& value, Range<double> range, const std::string& about);
  void read(const std::string& key, std::string& value, const std::string& about);
  // Absent or null is a value of its own.
  void read(const std::string& key, std::optional<bool>& value, const std::string& about);
  template <typename T>
  requires std::is_arithmetic_v<T>
  void read(const std::string& key, std::optional<T>& value, Range<T> range,
            const std::string& about);
  // Lists.
  void read(const std::string& key, std::vector<int64_t>& value, Range<int64_t> range,
            const std::string& about);
  /// A text, or a list of texts.
  void read(const std::string& key, std::vector<std::string>& value, const std::string& about);
  /// N numbers.
  template <typename T, size_t N>
  void read(const std::string& key, std::array<T, N>& value, Range<double> range,
            const std::string& about);
  template <typename T, size_t N>
  void read(const std::string& key, std::optional<std::array<T, N>>& value, Range<double> range,
            const std::string& about);

  /// One of `names`.
  void choose(const std::string& key, std::string& value, const std::vector<std::string>& names,
              const std::string& about);
  /// The same of values that have names; the default is shown by the first that it has.
  template <typename T>
  void choose(const std::string& key, T& value, const std::vector<Named<T>>& names,
              const std::string& about);

  /// A number, or a list of numbers; empty when absent. Records nothing.
  std::vector<double> number_or_list(const std::string& key);

  /// Before the key is read: that it must be there. Errors: missing(), with `why`.
  void require(const std::string& key, const std::string& why);
  /// Records a key that is read by other means; see Setting. Nothing without `about`.
  void record(const std::string& key, const std::string& kind, const std::string& fallback,
              const std::string& about);

  /// The sub-section, made when absent. Call finish() on it too. Errors besides: refuse_misspelt().
  Section section(const std::string& key);

  /// Present, and not null.
  bool has(const std::string& key) const;
  /// Present, even if null.
  bool present(const std::string& key) const { return node_->find(key) != nullptr; }
  /// For a key that has to be there: one that nobody knows and that resembles it is told first.
  [[noreturn]] void missing(const std::string& key, const std::string& why) const;
  /// Errors: an unknown key that resembles `key`.
  void refuse_misspelt(const std::string& key) const;

  /// A key whose content is somebody else's; null when absent.
  Node* any(const std::string& key);
  /// A key of the schema of which only these values can be honoured ("" stands for null); another
  /// is an error that ends with `why`.
  void only(const std::string& key, const std::vector<std::string>& values, const std::string& why);

  /// Errors: the first key that is none of `keys`, with the nearest of them. Before anything is
  /// asked for: a section whose name is misspelt is not missing.
  void expect(const std::vector<std::string>& keys);
  /// Errors: the key by its old name, with what it is called now.
  void refuse_old_name(const std::string& old, const std::string& now) const;
  /// Errors: the first key that was not asked for, with the nearest that was.
  void finish() const;

  const std::string& path() const { return path_; }
  Settings* settings() const { return settings_; }
  /// "train.loader.batch_size".
  std::string name_of(const std::string& key) const;
  /// Place of the key, or of the section where it is missing.
  std::string where(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& why) const;

 private:
  static std::string kind_of(Range<int64_t> range);
  static std::string kind_of(Range<double> range);
  static std::string list_kind(size_t count, bool whole, Range<double> range);
  static std::string shown_list(const std::vector<double>& numbers);
  Node* value(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  std::vector<std::string> texts(const std::string& key);
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& names, const std::string& about);
  /// Errors: `numbers`, which came for `key`, are not `count` numbers within the range.
  void check_list(const std::string& key, const std::vector<double>& numbers, size_t count,
                  bool whole, Range<double> range);
  void fill(const std::string& key, Node node);
  std::string hint(const std::string& key) const;
  [[noreturn]] void unknown(const Node::Entry& entry, const std::string& hint) const;
  [[noreturn]] void wrong(const std::string& key, const Node& node, const std::string& must) const;

  Node* node_;
  std::string path_;
  Settings* settings_;
  std::vector<std::string> known_;
  std::vector<std::string> required_;
};

template <typename T>
void Section::choose(const std::string& key, T& value, const std::vector<Named<T>>& names,
                     const std::string& about) {
  std::vector<std::string> texts;
  std::string fallback;
  for (const auto& [name, one] : names) {
    texts.emplace_back(name);
    if (fallback.empty() && one == value) fallback = name;
  }
  const std::string given = choice(key, fallback, texts, about);
  for (const auto& [name, one] : names) {
    if (given == name) value = one;
  }
}

template <typename T>
requires std::is_arithmetic_v<T>
void Section::read(const std::string& key, std::optional<T>& value, Range<T> range,
                   const std::string& about) {
  if (has(key)) return read(key, value.emplace(), range, about);
  any(key);
  record(key, kind_of(range), "", about);
}

template <typename T, size_t N>
void Section::read(const std::string& key, std::array<T, N>& value, Range<double> range,
                   const std::string& about) {
  constexpr bool whole = std::is_integral_v<T>;
  record(key, list_kind(N, whole, range), shown_list({value.begin(), value.end()}), about);
  const auto numbers = number_or_list(key);
  if (numbers.empty() && !has(key)) return;
  check_list(key, numbers, N, whole, range);
  for (size_t i = 0; i < N; ++i) value[i] = static_cast<T>(numbers[i]);
}

template <typename T, size_t N>
void Section::read(const std::string& key, std::optional<std::array<T, N>>& value,
                   Range<double> range, const std::string& about) {
  if (has(key)) return read(key, value.emplace(), range, about);
  any(key);
  record(key, list_kind(N, std::is_integral_v<T>, range), "", about);
}

/// The scalar as YAML 1.1 reads it; false when it is something else (or quoted).
bool read_flag(const Node& node, bool* value);
bool read_whole(const Node& node, int64_t* value);
bool read_number(const Node& node, double* value);

}  // namespace lockstep
