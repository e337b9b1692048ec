#include "lockstep/train.h"
#include "lockstep/train/program/command_line.h"

namespace lockstep {

int train_main(int argc, char** argv) {
  return command_line_main(argc, argv, run_predict_command);
}

}  // namespace lockstep
