#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep::app;

/// The words of the command line; options in the place of a verb are that verb.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return words;
  if (words[0] == "--help" || words[0] == "-h") words[0] = "help";
  if (words[0] == "--version") words[0] = "version";
  return words;
}

int body(int argc, char** argv) {
  const auto words = words_of(argc, argv);
  if (words.empty()) {
    verb_help({});
    return 2;
  }
  return dispatch(verbs(), "lockstep", "verb", words);
}

/// "lockstep run" for that verb, which its errors begin with; "lockstep" for none.
std::string name_of(const std::vector<std::string>& words) {
  const auto all = verbs();
  const bool known =
      !words.empty() && std::any_of(all.begin(), all.end(), [&](const Command& verb) {
        return std::string_view(verb.name) == words[0];
      });
  if (!known) return "lockstep";
  const bool of_two_words = words.size() > 1 && words[0] == "bench" && words[1] == "collectives";
  return "lockstep " + words[0] + (of_two_words ? " " + words[1] : "");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main(name_of(words_of(argc, argv)), body, argc, argv);
}
