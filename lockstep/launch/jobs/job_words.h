#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/help_text.h"
#include "lockstep/launch/option_words.h"

namespace lockstep {

enum class TakesName { kYes, kNo };

/// The words of a small verb: options, and at most one name, which is a job's.
class JobWords {
 public:
  /// Errors: those of read_option_words(); kInvalidArgument (two names, or one where none is
  /// taken).
  JobWords(const std::vector<std::string>& words, std::span<const OptionName> names,
           const std::string& verb, TakesName takes_name = TakesName::kYes);

  /// --help was given; the page has been printed then.
  bool wants_help(const HelpPage& page) const;
  bool flag(const std::string& name) const { return value(name).has_value(); }
  std::optional<std::string> value(const std::string& name) const;
  const std::string& name() const { return name_; }

 private:
  std::vector<OptionWord> given_;
  std::string name_;
};

}  // namespace lockstep
