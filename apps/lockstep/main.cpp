#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"

namespace {

int body(int argc, char** argv) {
  using namespace lockstep::app;
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    verb_help({});
    return 2;
  }
  if (args[0] == "--help" || args[0] == "-h") args[0] = "help";
  if (args[0] == "--version") args[0] = "version";
  return dispatch(verbs(), "lockstep", "verb", args);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep", body, argc, argv);
}
