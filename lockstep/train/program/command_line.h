#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// Gets the words behind the verb, and the verb as the user typed it. Returns the exit status.
using VerbCommand = int (*)(const std::vector<std::string>& words, const std::string& verb);

/// See train_main(). Without `predict` the program has no --predict.
int command_line_main(int argc, char** argv, VerbCommand predict);

}  // namespace lockstep
