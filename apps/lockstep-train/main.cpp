// lockstep train: trains, evaluates or checks a model described by a YAML file. One process of a
// run, alone or under any launcher that World::join() detects.

#include "lockstep/train.h"
#include "lockstep/train/program/command_line.h"

// Without predict, and so without the libraries that draw: ranks start faster. A shared library of
// --plugin that is a program, too, finds the function here.
int lockstep::train_main(int argc, char** argv) {
  return command_line_main(argc, argv, nullptr);
}

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
