// lockstep predict, which is `--predict` of train_main(). It is a program of its own because it
// loads the libraries that draw, and ranks that train start faster without them.

#include <string>
#include <vector>

#include "lockstep/train.h"

int main(int argc, char** argv) {
  std::string mode = "--predict";
  std::vector<char*> words(argv, argv + argc);
  if (argc < 2 || mode != argv[1]) words.insert(words.begin() + (argc > 0 ? 1 : 0), mode.data());
  words.push_back(nullptr);
  return lockstep::train_main(static_cast<int>(words.size()) - 1, words.data());
}
