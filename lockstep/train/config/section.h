#pragma once
// Typed reading of one mapping of the configuration: every key is asked for by name and type, and
// what nobody asked for is an error. A key that is absent is filled in with its default, so that
// the tree becomes the effective configuration.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/train/config/node.h"

namespace lockstep {

/// Errors of every call: kInvalidArgument "PLACE: PATH.KEY must be ..., not '...'".
class Section {
 public:
  /// `path` is the section's full name ("train.loader", empty for the whole file). A null node
  /// becomes an empty mapping; anything else that is no mapping is an error.
  Section(Node& node, std::string path);

  bool flag(const std::string& key, bool fallback);
  int64_t whole(const std::string& key, int64_t fallback, int64_t lo, int64_t hi);
  double number(const std::string& key, double fallback, double lo, double hi);
  std::string text(const std::string& key, const std::string& fallback);
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& allowed);
  std::vector<int64_t> wholes(const std::string& key, int64_t lo, int64_t hi);
  /// A number, or a list of numbers; empty when absent.
  std::vector<double> number_or_list(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< A text, or a list of texts.

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
  /// "train.loader.batch_size".
  std::string name_of(const std::string& key) const;
  /// Place of the key, or of the section where it is missing.
  std::string where(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& why) const;

 private:
  Node* value(const std::string& key);
  void fill(const std::string& key, Node node);
  std::string hint(const std::string& key) const;
  [[noreturn]] void unknown(const Node::Entry& entry, const std::string& hint) const;
  [[noreturn]] void wrong(const std::string& key, const Node& node, const std::string& must) const;

  Node* node_;
  std::string path_;
  std::vector<std::string> known_;
};

/// The scalar as YAML 1.1 reads it; false when it is something else (or quoted).
bool read_flag(const Node& node, bool* value);
bool read_whole(const Node& node, int64_t* value);
bool read_number(const Node& node, double* value);

}  // namespace lockstep
