#include <unistd.h>

#include <cerrno>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/proc.h"
#include "lockstep/error.h"

namespace lockstep::app {
namespace {

void execute(const std::string& path, const std::string& program,
             const std::vector<std::string>& args) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  ::execvp(path.c_str(), argv.data());
  if (errno != ENOENT && errno != ENOTDIR) throw io_error("run " + path);
}

}  // namespace

bool execute_beside(const std::string& program, const std::vector<std::string>& args) {
  const std::string folder = program_folder();
  if (!folder.empty()) execute(folder + "/" + program, program, args);
  execute(program, program, args);
  return false;
}

}  // namespace lockstep::app
