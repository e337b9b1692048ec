#include "lockstep/base/quick_end.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace lockstep::inline internal {
namespace {

void end(int status, void*) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

void end_without_teardown() {
  ::on_exit(end, nullptr);
}

}  // namespace lockstep::inline internal
