// lockstep train: trains, evaluates or checks a model described by a YAML file. One process of a
// run, alone or under any launcher that World::join() detects.

#include "lockstep/train.h"

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
