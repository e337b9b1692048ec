#pragma once
// A store that kills its process at a chosen request.

#include <signal.h>

#include <atomic>

#include "tests/comm/support/forwarding_store.h"

namespace lockstep::testing {

/// Forwards requests to another store, and kills this process before the n-th call after die_at(n).
class DyingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void die_at(int call) { countdown_ = call; }

 private:
  void begins() override {
    if (countdown_ > 0 && --countdown_ == 0) ::raise(SIGKILL);
  }

  std::atomic<int> countdown_ = 0;
};

}  // namespace lockstep::testing
