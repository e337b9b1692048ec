#pragma once
// Shared by all commands that parse options with CLI11: the form of help, and the error for an
// unknown option.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/help_text.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::app {

/// CLI11's text for an option's value: "TYPE:CHECK", such as "INT:INT in [1 - 256]".
struct ValueWords {
  std::string metavar;  ///< "N"
  std::string allowed;  ///< "1 to 256", or "" if any value is allowed.
};

inline ValueWords value_words(const std::string& type) {
  const size_t cut = type.find(':');
  ValueWords words{type.substr(0, cut), cut == std::string::npos ? "" : type.substr(cut + 1)};
  if (words.metavar == "INT" || words.metavar == "UINT") words.metavar = "N";
  if (words.metavar == "FLOAT") words.metavar = "X";
  if (words.metavar == "TEXT") words.metavar = "NAME";
  if (const size_t from = words.allowed.find(" in ["); from != std::string::npos) {
    words.allowed = words.allowed.substr(from + 5, words.allowed.size() - from - 6);
    words.allowed.replace(words.allowed.find(" - "), 3, " to ");
  } else if (words.allowed.starts_with('{')) {
    const auto names = split(words.allowed.substr(1, words.allowed.size() - 2), ',');
    words.allowed = fmt::format("{}", fmt::join(names, ", "));
  } else if (words.allowed == "POSITIVE") {
    words.allowed = "above 0";
  }
  return words;
}

/// The description, with the facts that it leaves out.
inline std::string help_of(const CLI::Option& option, const std::string& allowed) {
  std::vector<std::string> notes;
  // A list of names in the description explains more than a bare list.
  if (!allowed.empty() && option.get_description().find(": ") == std::string::npos) {
    notes.push_back(allowed);
  }
  if (option.get_required() && !option.get_positional()) notes.emplace_back("needed");
  for (const CLI::Option* other : option.get_needs()) notes.push_back("with " + other->get_name());
  for (const CLI::Option* other : option.get_excludes()) {
    notes.push_back("not with " + other->get_name());
  }
  const std::string value = option.get_default_str();
  if (!value.empty() && value != "\"\"") notes.push_back("default " + value);
  if (notes.empty()) return option.get_description();
  return fmt::format("{} ({})", option.get_description(), fmt::join(notes, "; "));
}

inline HelpRow help_row(const CLI::Option& option) {
  const ValueWords words = value_words(option.get_type_name());
  if (option.get_positional()) return {option.get_name(true), help_of(option, words.allowed)};
  std::vector<std::string> names;
  for (const auto& letter : option.get_snames()) names.push_back("-" + letter);
  if (!option.get_lnames().empty()) names.push_back("--" + option.get_lnames().front());
  const bool flag = option.get_items_expected_max() == 0 || words.metavar.empty();
  return {fmt::format("{}{}{}", fmt::join(names, ", "), flag ? "" : " ", flag ? "" : words.metavar),
          help_of(option, words.allowed)};
}

/// Help in the form of all verbs, not in CLI11's.
inline std::string command_help(const CLI::App& app) {
  std::string usage = app.get_name();
  HelpGroup positional, options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      usage += " " + option->get_name(true);
      positional.rows.push_back(help_row(*option));
    } else if (option != app.get_help_ptr()) {
      options.rows.push_back(help_row(*option));
      if (option->get_required()) {
        usage += " " + help_row(*option).left.substr(0, help_row(*option).left.find(','));
        usage += " " + value_words(option->get_type_name()).metavar;
      }
    }
  }
  if (!options.rows.empty()) usage += " [OPTIONS]";
  options.rows.push_back({"-h, --help", "print this"});
  HelpPage page{{{usage, ""}}, app.get_description(), {}, ""};
  if (!positional.rows.empty()) page.groups.push_back(std::move(positional));
  page.groups.push_back(std::move(options));
  return help_text(page);
}

/// Refuses an unknown word. Errors: always, kInvalidArgument.
[[noreturn]] inline void refuse_word(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  const bool option = word.size() > 1 && word[0] == '-';
  const std::string name = word.substr(0, word.find('='));
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} '{}'{} ({} --help lists what there is)",
                          option ? "unknown option" : "unexpected word", name,
                          option ? did_you_mean(name, names) : "", app.get_name()));
}

/// Parses the words, the last first. Returns the exit status if the user requested only help, which
/// it prints. Errors: kInvalidArgument naming the word, and the nearest option.
inline std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> reversed) {
  app.formatter_fn(
      [](const CLI::App* of, const std::string&, CLI::AppFormatMode) { return command_help(*of); });
  app.allow_extras();
  const auto refuse_extras = [&] {
    const auto rest = app.remaining();
    if (rest.empty()) return;
    const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
      return word.size() > 1 && word[0] == '-';
    });
    refuse_word(app, option == rest.end() ? rest.front() : *option);
  };
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    refuse_extras();  // the unknown word explains why another one is missing
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} (see {} --help)", error.what(), app.get_name()));
  }
  refuse_extras();
  return std::nullopt;
}

}  // namespace lockstep::app
