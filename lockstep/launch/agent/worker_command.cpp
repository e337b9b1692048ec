#include "lockstep/launch/agent/worker_command.h"

#include <cctype>
#include <string_view>

namespace lockstep::inline internal {
namespace {

constexpr std::string_view kRunPathProgram =
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')";

bool continues_name(const std::string& text, size_t at) {
  return at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
}

/// Length of the macro for the local rank at text[at], which is a '$'; 0: it is something else.
size_t macro_length(const std::string& text, size_t at) {
  constexpr std::string_view kBraced = "${local_rank}";
  constexpr std::string_view kBare = "$local_rank";
  if (text.compare(at, kBraced.size(), kBraced) == 0) return kBraced.size();
  if (text.compare(at, kBare.size(), kBare) != 0) return 0;
  return continues_name(text, at + kBare.size()) ? 0 : kBare.size();
}

std::string replace_macro(const std::string& text, const std::string& value) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const bool escaped = text.compare(at, 2, "$$") == 0;
    const size_t length = !escaped && text[at] == '$' ? macro_length(text, at) : 0;
    if (length > 0) {
      result += value;
      at += length;
    } else {
      const size_t kept = escaped ? 2 : 1;
      result.append(text, at, kept);
      at += kept;
    }
  }
  return result;
}

}  // namespace

std::string python_script(const RunOptions& options) {
  const std::string& name = options.command[0];
  const bool named_py = name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0;
  const bool by_python = options.program_kind == ProgramKind::kRunPath ||
                         (options.program_kind == ProgramKind::kProgram && named_py);
  return by_python ? name : "";
}

std::vector<std::string> worker_command(const RunOptions& options, const Environment& environment) {
  std::vector<std::string> command;
  const bool module = options.program_kind == ProgramKind::kModule;
  if (module || !python_script(options).empty()) {
    const std::string named = value_in(environment, "PYTHON_EXEC");
    command = {named.empty() ? "python3" : named, "-u"};
    if (module) command.emplace_back("-m");
    if (options.program_kind == ProgramKind::kRunPath) {
      command.insert(command.end(), {"-c", std::string(kRunPathProgram)});
    }
  }
  command.insert(command.end(), options.command.begin(), options.command.end());
  if (options.pass_local_rank) {
    const auto arguments = static_cast<std::ptrdiff_t>(options.command.size()) - 1;
    command.insert(command.end() - arguments, "--local-rank=${local_rank}");
  }
  return command;
}

std::vector<std::string> with_local_rank(std::vector<std::string> command, int local_rank) {
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i].find('$') == std::string::npos) continue;
    command[i] = replace_macro(command[i], std::to_string(local_rank));
  }
  return command;
}

std::string program_name(const RunOptions& options) {
  const std::string& name = options.command[0];
  return options.program_kind == ProgramKind::kModule ? name : name.substr(name.rfind('/') + 1);
}

std::string program_and_arguments(const RunOptions& options) {
  std::string text = program_name(options);
  for (size_t i = 1; i < options.command.size(); ++i) {
    text += '\0';  // which no argument contains
    text += options.command[i];
  }
  return text;
}

}  // namespace lockstep::inline internal
