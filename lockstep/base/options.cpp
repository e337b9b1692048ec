#include "lockstep/base/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

std::string with_underscores(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

/// ", did you mean '--follow'?", or "". Dashes do not count: "--xpu" is far from "--np". `name` may
/// also be the beginning of an option.
std::string nearest_option(const std::string& name, std::span<const OptionName> names) {
  std::vector<std::string> known;
  for (const OptionName& option : names) known.emplace_back(option.name);
  std::string nearest = nearest_name(name, known);
  for (size_t i = 0; nearest.empty() && name.size() > 2 && i < known.size(); ++i) {
    if (known[i].starts_with(name)) nearest = known[i];
  }
  return nearest.empty() ? "" : fmt::format(", did you mean '{}'?", long_option(nearest));
}

/// One command line, read from its first word on.
class Reader {
 public:
  Reader(const std::vector<std::string>& words, std::span<const OptionName> names,
         const std::string& verb)
      : words_(words), names_(names), verb_(verb) {}

  GivenWords read(OptionsEnd end) {
    for (; next_ < words_.size(); ++next_) {
      const std::string& word = words_[next_];
      const bool option = word.size() > 1 && word[0] == '-';
      if (option && word != "--") {
        read_option(has_one_dash(word) ? "-" + word : word);
        continue;
      }
      if (word == "--") ++next_;
      if (word == "--" || end == OptionsEnd::kAtFirstWord) break;
      given_.rest.push_back(word);
    }
    given_.rest.insert(given_.rest.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_),
                       words_.end());
    return std::move(given_);
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", verb_, text));
  }

  /// mpirun's way: "-np 4", "-hostfile f".
  bool has_one_dash(const std::string& word) const {
    if (word.size() < 3 || word[1] == '-') return false;
    const std::string name = with_underscores(std::string_view(word).substr(1, word.find('=') - 1));
    return std::any_of(names_.begin(), names_.end(),
                       [&](const OptionName& option) { return option.name == name; });
  }

  [[noreturn]] void refuse_unknown(const std::string& word) const {
    const std::string written = word.substr(0, word.find('='));
    const std::string name =
        with_underscores(written.substr(std::min(written.find_first_not_of('-'), written.size())));
    refuse(fmt::format("unknown option '{}'{} ({} --help lists them)", written,
                       nearest_option(name, names_), verb_));
  }

  /// By "--name" or "-n".
  const OptionName* find(const std::string& what) const {
    const bool letter = !what.starts_with("--");
    const std::string name = with_underscores(std::string_view(what).substr(letter ? 1 : 2));
    const auto found = std::find_if(names_.begin(), names_.end(), [&](const OptionName& option) {
      return letter ? option.letter == name[0] : option.name == name;
    });
    return found == names_.end() ? nullptr : &*found;
  }

  /// Leaves next_ at the last word that was read.
  void read_option(const std::string& word) {
    const bool is_long = word.starts_with("--");
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string what = is_long ? word.substr(0, equals) : word.substr(0, 2);
    const OptionName* const found = find(what);
    const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
    const bool several_letters = !is_long && attached && word[2] != '=';
    if (found == nullptr || (found->kind == OptionKind::kFlag && several_letters)) {
      refuse_unknown(word);
    }
    const OptionName& option = *found;
    const size_t words_after = words_.size() - next_ - 1;
    if (option.kind == OptionKind::kPair) {
      if (attached || words_after < 2) {
        refuse(fmt::format("{} needs two words ({})", what, option.metavar));
      }
      next_ += 2;
    } else if (option.kind == OptionKind::kFlag) {
      if (attached) refuse(fmt::format("{} takes no value", what));
      given_.options.push_back({option.name, "1", what});
    } else if (attached) {
      const size_t cut = is_long ? equals + 1 : (word[2] == '=' ? 3 : 2);
      given_.options.push_back({option.name, word.substr(cut), what});
    } else if (words_after == 0 || words_[next_ + 1] == "--") {
      refuse(fmt::format("{} needs a value ({})", what, option.metavar));
    } else {
      given_.options.push_back({option.name, words_[++next_], what});
    }
    while (option.kind == OptionKind::kWords && next_ + 1 < words_.size() &&
           !words_[next_ + 1].starts_with('-')) {
      given_.options.push_back({option.name, words_[++next_], what});
    }
  }

  const std::vector<std::string>& words_;
  const std::span<const OptionName> names_;
  const std::string& verb_;
  size_t next_ = 0;
  GivenWords given_;
};

}  // namespace

GivenWords read_option_words(const std::vector<std::string>& words,
                             std::span<const OptionName> names, const std::string& verb,
                             OptionsEnd end) {
  return Reader(words, names, verb).read(end);
}

void refuse_rest(const std::vector<std::string>& rest, std::span<const OptionName> names,
                 const std::string& verb) {
  if (rest.empty()) return;
  std::vector<std::string> known;
  for (const OptionName& option : names) known.push_back(long_option(option.name));
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: unexpected word '{}' (there are: {}){}", verb, rest[0],
                          fmt::join(known, ", "), nearest_option(rest[0], names)));
}

const std::string& one_of(const std::vector<std::string>& names, const std::string& value,
                          const std::string& what) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return value;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: '{}' is none of {}{}", what, value, fmt::join(names, ", "),
                          did_you_mean(value, names)));
}

std::string default_text(double value) {
  return fmt::format("{}", value);
}

std::string default_text(std::chrono::milliseconds seconds) {
  return fmt::format("{}", static_cast<double>(seconds.count()) / 1000);
}

std::string help_with(std::string_view help, const std::vector<std::string>& values) {
  std::string text(help);
  size_t place = 0;
  for (const std::string& value : values) {
    place = text.find("{}", place);
    if (place == std::string::npos)
      throw Error(ErrorCode::kInternal, "no {} for a default: " + text);
    text.replace(place, 2, value);
    place += value.size();
  }
  return text;
}

std::string long_option(std::string_view name) {
  return "--" + std::string(name);
}

std::string option_usage(const OptionName& option) {
  return fmt::format("{}{}{}{}", option.letter == 0 ? "" : fmt::format("-{}, ", option.letter),
                     long_option(option.name), option.metavar.empty() ? "" : " ", option.metavar);
}

}  // namespace lockstep::inline internal
