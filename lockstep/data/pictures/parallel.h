#pragma once
// Work on many files at once. Private to this folder.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lockstep::inline internal {

inline constexpr size_t kReaders = 8;  // more than cores: they wait for the disk

/// Calls `work(i)` for each i in [0, count), on several threads. Rethrows the first exception.
template <typename Work>
void for_each_in_parallel(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(kReaders, count); ++i) threads.emplace_back(run);
  run();
  threads.clear();  // joins them
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lockstep::inline internal
