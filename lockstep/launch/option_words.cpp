#include "lockstep/launch/option_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string with_underscores(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.size() > 2) std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

const OptionName& find_option(const std::string& word, std::span<const OptionName> names,
                              const std::string& verb) {
  const std::string wanted = with_underscores(word);
  std::vector<std::string> known;
  for (const OptionName& option : names) {
    if (wanted == option.name || (wanted == option.letter && !wanted.empty())) return option;
    known.emplace_back(option.name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: unknown option '{}'{} ({} --help lists them)", verb,
                          word.substr(0, word.find('=')), did_you_mean(wanted, known), verb));
}

}  // namespace

std::vector<OptionWord> read_option_words(const std::vector<std::string>& words,
                                          std::span<const OptionName> names,
                                          const std::string& verb) {
  std::vector<OptionWord> result;
  bool options = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!options || word.size() < 2 || word[0] != '-') {
      result.push_back({"", word});
    } else if (word == "--") {
      options = false;
    } else {
      const OptionName& option = find_option(word, names, verb);
      const size_t equals = word.find('=');
      OptionWord read{std::string(option.name), ""};
      if (equals != std::string::npos && !option.takes_value) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{}: {} takes no value", verb, option.name));
      }
      if (equals != std::string::npos) {
        read.value = word.substr(equals + 1);
      } else if (option.takes_value) {
        if (i + 1 == words.size()) {
          throw Error(ErrorCode::kInvalidArgument,
                      fmt::format("{}: {} needs a value", verb, option.name));
        }
        read.value = words[++i];
      }
      result.push_back(std::move(read));
    }
  }
  return result;
}

}  // namespace lockstep
