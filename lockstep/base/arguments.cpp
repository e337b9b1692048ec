#include "lockstep/base/arguments.h"

#include <cctype>

namespace lockstep {
namespace {

bool is_short_with_value(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && word[2] == '=' &&
         std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

}  // namespace

std::vector<std::string> reversed_arguments(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    const std::string word = argv[i];
    if (is_short_with_value(word)) {
      words.push_back(word.substr(3));
      words.push_back(word.substr(0, 2));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace lockstep
