#pragma once
// A call's error, for tests of its code and text; and calls from many threads.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/store.h"

namespace lockstep::testing {

/// Long enough for a busy machine.
inline Deadline soon() {
  return Deadline::after(30s);
}

/// Returns once `key` is gone; if it stays, with a test failure.
inline void wait_until_erased(KeyValueStore& store, const std::string& key) {
  const auto limit = soon();
  // Of before the first look: from 0 on, a watch does not see that a key has gone.
  uint64_t version = store.watch(key, 0, Deadline::after(0s)).version;
  while (store.try_get(key, soon())) {
    if (limit.passed()) {
      ADD_FAILURE() << "the key " << key << " stays";
      return;
    }
    version = store.watch(key, version, limit).version;
  }
  EXPECT_FALSE(limit.passed()) << "the watch did not end when " << key << " was erased";
}

/// The value of `key`, once it has one; if it never does, nothing and a test failure.
inline std::string await_value(KeyValueStore& store, const std::string& key) {
  const auto limit = soon();
  for (uint64_t version = 0; !limit.passed();) {
    if (const auto value = store.try_get(key, soon())) return *value;
    version = store.watch(key, version, limit).version;
  }
  ADD_FAILURE() << "the key " << key << " does not come";
  return {};
}

/// The error that `body` throws; a test failure and kInternal if it throws none.
inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ErrorCode::kInternal, "none"};
}

inline bool mentions(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

/// Runs body(0) to body(count - 1) at the same time, each in its own thread.
inline void run_threads(int count, const std::function<void(int index)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

}  // namespace lockstep::testing
