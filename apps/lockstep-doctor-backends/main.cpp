// The program that `lockstep doctor backends` executes if libtorch is installed.

#include "apps/lockstep/backend_table.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device_backends.h"

namespace {

int body(int argc, char** argv) {
  using namespace lockstep;
  register_device_backends();
  return app::print_backends(report_backends(), std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep doctor backends", body, argc, argv);
}
