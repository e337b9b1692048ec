#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

/// "lockstep run" for that verb, so that its errors begin with it; "lockstep" for no verb.
std::string name_of(int argc, char** argv) {
  const auto all = lockstep::app::verbs();
  const bool known = argc > 1 && std::any_of(all.begin(), all.end(), [&](const auto& verb) {
                       return std::string_view(verb.name) == argv[1];
                     });
  return known ? std::string("lockstep ") + argv[1] : "lockstep";
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main(name_of(argc, argv), body, argc, argv);
}
