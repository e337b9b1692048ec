#pragma once
// The options of a verb as a table, from which its command line is read and its --help printed.
// As torchrun's: `-` and `_` are the same in a name, and values follow a space or `=`. As mpirun's:
// a long name may have one dash.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/help_text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

enum class OptionKind {
  kValue,
  kFlag,
  kList,   ///< As often as wanted; a value a line.
  kWords,  ///< As kList, and the words up to the next option are values of it, too.
  kPair,   ///< Two words follow, and mean nothing here.
};

/// Request: what the options of the verb are read into.
template <class Request>
struct Option {
  /// Takes the option's value. `what` names the option or variable it came from.
  using Apply = void (*)(Request& request, const std::string& value, const std::string& what);

  std::string_view name;  ///< With underscores.
  char letter;            ///< 0: none.
  OptionKind kind;
  std::string_view metavar;
  std::string_view help;  ///< Empty: not listed. Each "{}" is a value of `shown`.
  Apply apply;
  /// The values that `request` has for "{}" in the help: those of a new one are the defaults.
  std::vector<std::string> (*shown)(const Request& request) = nullptr;
};

/// Options that a user looks for in one place.
template <class Request>
struct OptionGroup {
  std::string_view title;  ///< Empty: not shown.
  std::vector<Option<Request>> options;
};

/// Option::apply of what only sets a member: set_flag<&Request::json>, set_text<&Request::folder>.
template <auto kMember>
constexpr auto set_flag =
    [](auto& request, const std::string&, const std::string&) { request.*kMember = true; };
template <auto kMember>
constexpr auto set_text =
    [](auto& request, const std::string& value, const std::string&) { request.*kMember = value; };
/// The same of a file or folder, whose name cannot be empty, as that of an unset variable is.
template <auto kMember>
constexpr auto set_path = [](auto& request, const std::string& value, const std::string& what) {
  if (value.empty()) throw Error(ErrorCode::kInvalidArgument, what + ": the name is empty");
  request.*kMember = value;
};
/// Of an option that may be given several times, or takes several words.
template <auto kMember>
constexpr auto add_text = [](auto& request, const std::string& value, const std::string&) {
  (request.*kMember).push_back(value);
};

/// A number within bounds, as the member's type.
template <auto kMember, int64_t kLo, int64_t kHi>
constexpr auto set_whole = [](auto& request, const std::string& value, const std::string& what) {
  using Number = std::remove_reference_t<decltype(request.*kMember)>;
  request.*kMember = static_cast<Number>(parse_int(value, kLo, kHi, what));
};

inline std::string default_text(const std::string& value) {
  return value;
}
std::string default_text(double value);
std::string default_text(std::chrono::milliseconds seconds);  ///< "0.5": in seconds.
template <std::integral Number>
std::string default_text(Number value) {
  return std::to_string(value);
}

/// Option::shown of a member: shows<&Request::folder>.
template <auto kMember>
constexpr auto shows = [](const auto& request) -> std::vector<std::string> {
  return {default_text(request.*kMember)};
};

/// `help` with `values` in the places of "{}".
std::string help_with(std::string_view help, const std::vector<std::string>& values);

/// `value`, which must be one of `names`. Errors: kInvalidArgument naming `what` and all names.
const std::string& one_of(const std::vector<std::string>& names, const std::string& value,
                          const std::string& what);

template <class Request>
Option<Request> help_option() {
  return {"help", 'h', OptionKind::kFlag, "", "print this", set_flag<&Request::help>};
}

struct OptionName {
  std::string_view name;
  char letter;
  OptionKind kind;
  std::string_view metavar;
};

struct GivenOption {
  std::string_view name;  ///< As in OptionName.
  std::string value;      ///< "1" of a flag.
  std::string what;       ///< "--nnodes" as the user wrote it.
};

struct GivenWords {
  std::vector<GivenOption> options;  ///< In the order of the command line.
  std::vector<std::string> rest;     ///< Words that are no options, and all after "--".
};

enum class OptionsEnd {
  kAtDashes,
  kAtFirstWord,  ///< Of a command that is started with the rest.
};

/// Errors: kInvalidArgument naming `verb`, the option and the nearest right one.
GivenWords read_option_words(const std::vector<std::string>& words,
                             std::span<const OptionName> names, const std::string& verb,
                             OptionsEnd end);

/// Of a verb that takes no other words. Errors: kInvalidArgument naming the word and the options.
void refuse_rest(const std::vector<std::string>& rest, std::span<const OptionName> names,
                 const std::string& verb);

/// "--json" for OptionName::name "json".
std::string long_option(std::string_view name);

/// "-x, --export NAME[=V]"
std::string option_usage(const OptionName& option);

template <class Request>
OptionName name_of(const Option<Request>& option) {
  return {option.name, option.letter, option.kind, option.metavar};
}

template <class Request>
std::vector<OptionName> names_of(const std::vector<Option<Request>>& options) {
  std::vector<OptionName> names;
  for (const auto& option : options) names.push_back(name_of(option));
  return names;
}

template <class Request>
std::string help_of(const Option<Request>& option) {
  return option.shown == nullptr ? std::string(option.help)
                                 : help_with(option.help, option.shown(Request{}));
}

template <class Request>
HelpGroup help_group(const OptionGroup<Request>& group) {
  HelpGroup shown{std::string(group.title), {}};
  for (const auto& option : group.options) {
    if (option.help.empty()) continue;
    shown.rows.push_back({option_usage(name_of(option)), help_of(option)});
  }
  return shown;
}

/// What the words say of `request`, whose words `rest` are. Values are taken in their order.
template <class Request>
std::vector<std::string> read_request(const std::vector<std::string>& words,
                                      const std::vector<Option<Request>>& options,
                                      const std::string& verb, Request& request) {
  GivenWords given = read_option_words(words, names_of(options), verb, OptionsEnd::kAtDashes);
  for (const GivenOption& each : given.options) {
    for (const auto& option : options) {
      if (option.name == each.name) option.apply(request, each.value, each.what);
    }
  }
  return std::move(given.rest);
}

/// The same for a verb without other words. Errors: those of read_request() and refuse_rest(); none
/// of the latter with --help.
template <class Request>
void read_only_options(const std::vector<std::string>& words,
                       const std::vector<Option<Request>>& options, const std::string& verb,
                       Request& request) {
  const auto rest = read_request(words, options, verb, request);
  if (!request.help) refuse_rest(rest, names_of(options), verb);
}

}  // namespace lockstep::inline internal
