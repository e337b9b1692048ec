#pragma once
// Options of the small verbs, read the way `lockstep run` reads its own.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct OptionName {
  std::string_view name;    ///< "--device_num"; `-` and `_` are the same inside it.
  std::string_view letter;  ///< "-h", or "".
  bool takes_value;
};

struct OptionWord {
  std::string name;  ///< As in OptionName; "" for a word that is no option.
  std::string value;
};

/// "--name value", "--name=value", flags and other words, in their order; after "--" all are other
/// words. Errors: kInvalidArgument naming `verb`, the option and the nearest right one.
std::vector<OptionWord> read_option_words(const std::vector<std::string>& words,
                                          std::span<const OptionName> names,
                                          const std::string& verb);

}  // namespace lockstep
