#pragma once

#include <sys/fsuid.h>
#include <sys/types.h>
#include <unistd.h>

#include <thread>

namespace lockstep::testing {

/// For root, whom no mode of a file stops: the user of as_ordinary_user().
constexpr uid_t kOrdinaryUser = 65534;

/// Calls `body`, which must not throw, with the rights to files of a user who is not root: this
/// one, or kOrdinaryUser.
template <class Body>
void as_ordinary_user(Body&& body) {
  if (::geteuid() != 0) return body();
  std::thread([&] {  // the kernel keeps these numbers for each thread
    ::setfsgid(kOrdinaryUser);
    ::setfsuid(kOrdinaryUser);
    body();
  })
      .join();
}

}  // namespace lockstep::testing
