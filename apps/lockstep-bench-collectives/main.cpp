// The program that `lockstep bench collectives` executes for a back end of libtorch.

#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device_backends.h"

namespace {

int body(int argc, char** argv) {
  lockstep::register_device_backends();
  return lockstep::app::bench_collectives(std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep bench collectives", body, argc, argv);
}
