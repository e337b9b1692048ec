// lockstep predict, which is `--predict` of train_main(). It is a program of its own because it
// loads the libraries that draw, and ranks that train start faster without them.

#include "lockstep/train.h"

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
