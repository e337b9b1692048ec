#pragma once
// A section of the configuration for its own readers. They know the tree of the file, report keys
// that MindOCR has, and list the settings for the manual.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/registry.h"
#include "lockstep/train/config/node.h"

namespace lockstep::inline internal {

/// A key as its reader describes it.
struct Setting {
  std::string section;  ///< Full name, "train.loader".
  std::string key;
  std::string kind;  ///< "a number from 0 to 1", "one of top_k, latest_k".
  /// As the effective file has it; "required" where there is none, perhaps with an exception.
  std::string fallback;
  std::string about;  ///< One line.

  bool is_required() const { return fallback.starts_with("required"); }
};
using Settings = std::vector<Setting>;

/// A registered part gets it as its Section.
class ConfigSection : public Section {
 public:
  /// A null node becomes an empty mapping; any other node must be a mapping. `path`: as path().
  /// `settings`, if any, gets a record of each key that is read here and in sub-sections.
  ConfigSection(Node& node, std::string path, Settings* settings = nullptr)
      : Section(node, std::move(path), settings) {}

  /// Calls `read` with the section of a part, for readers of the configuration.
  template <typename Read>
  static auto within(Section& section, Read read) {
    ConfigSection copy{Section(section)};
    auto made = read(copy);
    section = copy;  // with the keys that were read
    return made;
  }

  ConfigSection section(const std::string& key) { return ConfigSection(Section::section(key)); }
  Settings* settings() const { return settings_; }

  /// A key whose content another reader interprets; null if absent.
  using Section::any;
  /// A number, or a list of numbers; empty if absent. Records nothing.
  using Section::number_or_list;
  /// A key that supports only these values ("" stands for null). Any other is an error that ends
  /// with `why`.
  void only(const std::string& key, const std::vector<std::string>& values, const std::string& why);
  /// Records a key that is read by other means. No effect without `about`.
  using Section::record;

  /// Present, even if null.
  using Section::present;
  /// Reports a missing key; an unknown key that resembles it is reported first.
  using Section::missing;
  /// Errors: an unknown key that resembles `key`.
  using Section::refuse_misspelt;
  /// Errors: a key is present under its old name, or in this section instead of its own; the
  /// message gives the right one.
  void refuse_wrong_name(const std::string& wrong, const std::string& right) const;
  /// Errors: the first key that is not in `keys`, with the nearest of them. Call it before any key
  /// is read: a section with a misspelt name is then not reported as missing. `elsewhere`: the end
  /// of the message for a key that is near none.
  void expect(const std::vector<std::string>& keys,
              const std::function<std::string(const std::string& key)>& elsewhere = {});
  /// Place of the key, or of the section if the key is missing.
  using Section::where;

 private:
  explicit ConfigSection(Section section) : Section(std::move(section)) {}
};

}  // namespace lockstep::inline internal
