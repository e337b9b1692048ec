#include "lockstep/launch/jobs/job_words.h"

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {

namespace {

[[noreturn]] void refuse_word(const std::string& word, std::span<const OptionName> names,
                              const std::string& verb) {
  std::vector<std::string> known;
  for (const OptionName& option : names) known.emplace_back(option.name);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: unexpected word '{}' (there are: {}){}", verb, word,
                          fmt::join(known, ", "), did_you_mean("--" + word, known)));
}

}  // namespace

JobWords::JobWords(const std::vector<std::string>& words, std::span<const OptionName> names,
                   const std::string& verb, TakesName takes_name)
    : given_(read_option_words(words, names, verb)) {
  for (const OptionWord& word : given_) {
    if (!word.name.empty()) continue;
    if (takes_name == TakesName::kNo) refuse_word(word.value, names, verb);
    if (!name_.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: one job at a time, not '{}' and '{}'", verb, name_, word.value));
    }
    name_ = word.value;
  }
}

bool JobWords::wants_help(const HelpPage& page) const {
  if (!flag("--help")) return false;
  std::fputs(help_text(page).c_str(), stdout);
  return true;
}

std::optional<std::string> JobWords::value(const std::string& name) const {
  for (const OptionWord& word : given_) {
    if (word.name == name) return word.value;
  }
  return std::nullopt;
}

}  // namespace lockstep
