#pragma once
// The options of `lockstep run` as a table: names, help, and what each does with its value.

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/agent/run_options.h"

namespace lockstep {

/// What the options say before they are put together.
struct RunOptionsDraft {
  RunOptions options;
  const Machine* machine = nullptr;
  std::string rdzv_endpoint;
  bool standalone = false;
  bool master_given = false;
  bool streams_given = false;
};

enum class OptionKind { kValue, kFlag };

struct RunOption {
  /// Takes the option's value. `what` names the option or variable it came from.
  using Apply = void (*)(RunOptionsDraft& draft, const std::string& value, const std::string& what);

  std::string_view name;  ///< With underscores.
  char letter;            ///< '\0': none.
  OptionKind kind;
  std::string_view metavar;
  std::string_view help;  ///< Empty: not listed.
  Apply apply;
};

/// All of them, in the order of --help.
const std::vector<RunOption>& run_option_table();

/// Throws kInvalidArgument.
[[noreturn]] void refuse_options(const std::string& text);

}  // namespace lockstep
