#pragma once
// A store whose user is killed at one of its questions.

#include <signal.h>

#include <atomic>

#include "tests/comm/support/forwarding_store.h"

namespace lockstep::testing {

/// Passes everything on to another store, and kills this process in front of the n-th call after
/// die_at(n).
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
