#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"
#include "lockstep/version.h"

namespace lockstep::app {

std::string command_table(std::span<const Command> commands) {
  size_t width = 0;
  for (const Command& command : commands)
    width = std::max(width, std::string_view(command.name).size());
  std::string text;
  for (const Command& command : commands)
    text += fmt::format("  {:<{}}   {}\n", command.name, width, command.summary);
  return text;
}

int verb_help(const std::vector<std::string>& args) {
  const bool names_verb = !args.empty() && !args[0].starts_with('-');
  const bool asked = !args.empty() && (args[0] == "--help" || args[0] == "-h");
  const size_t taken = names_verb || asked ? 1 : 0;
  if (args.size() > taken) {
    throw Error(ErrorCode::kInvalidArgument, "lockstep help: unexpected word '" + args[taken] +
                                                 "'; write lockstep help, or lockstep help VERB");
  }
  if (names_verb) return dispatch(verbs(), "lockstep", "verb", {args[0], "--help"});
  const std::string text = fmt::format(
      "lockstep {}: distributed training for libtorch\n\n"
      "usage: lockstep VERB [OPTIONS]\n\n{}\n"
      "lockstep VERB --help explains one of them.\n",
      version(), command_table(verbs()));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace lockstep::app
