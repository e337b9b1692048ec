#pragma once
// Times the all_reduce of each peer in the same way: many operations in a row after a barrier; the
// slowest rank counts. A line for each size: "NAME,ranks,bytes,min_us,median_us".

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace peers {

/// The operations of a peer; `values` are float32, with equal sizes on all ranks.
struct Peer {
  std::string name;
  int rank = 0;
  int size = 1;
  std::function<void()> barrier;
  /// Made once for each size, then called: the sum over all ranks, in place.
  std::function<std::function<void()>(std::vector<float>& values)> all_reduce;
  std::function<double(double)> largest;  ///< Over all ranks.
};

inline std::string env_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

inline double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Operations in a row, so that a round of small ones exceeds the clock's resolution.
inline int operations_in_a_row(size_t bytes) {
  if (bytes <= 1 << 10) return 200;
  if (bytes <= 64 << 10) return 100;
  if (bytes <= 1 << 20) return 20;
  return bytes <= 16 << 20 ? 3 : 1;
}

/// Every rank contributes ones, so each value is the number of ranks.
inline void check_sum(const Peer& peer, const std::vector<float>& values) {
  const auto expected = static_cast<float>(peer.size);
  const auto wrong =
      std::count_if(values.begin(), values.end(), [&](float x) { return x != expected; });
  if (wrong == 0) return;
  std::fprintf(stderr, "%s: %ld of %zu sums are wrong\n", peer.name.c_str(),
               static_cast<long>(wrong), values.size());
  std::exit(1);
}

/// 0 bytes: a barrier.
inline void time_size(const Peer& peer, size_t bytes, int rounds) {
  std::vector<float> values(bytes / sizeof(float), 1.F);
  const auto operation = bytes == 0 ? peer.barrier : peer.all_reduce(values);
  operation();
  check_sum(peer, values);
  std::fill(values.begin(), values.end(), 0.F);  // repeated sums must stay finite
  const int in_a_row = operations_in_a_row(bytes);
  for (int i = 0; i < std::min(in_a_row, 5); ++i) operation();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    peer.barrier();
    const double begin = now();
    for (int i = 0; i < in_a_row; ++i) operation();
    times.push_back(peer.largest((now() - begin) / in_a_row));
  }
  std::sort(times.begin(), times.end());
  if (peer.rank != 0) return;
  std::printf("%s,%d,%zu,%.2f,%.2f\n", peer.name.c_str(), peer.size, bytes, times.front() * 1e6,
              times[times.size() / 2] * 1e6);
  std::fflush(stdout);
}

/// SIZES: bytes; ROUNDS: per size, half as many above 16 MiB.
inline void time_all_sizes(const Peer& peer) {
  std::istringstream sizes(env_or("SIZES", "0 4 1024 65536 1048576 16777216 67108864 268435456"));
  const int rounds = std::stoi(env_or("ROUNDS", "9"));
  for (size_t bytes = 0; sizes >> bytes;)
    time_size(peer, bytes, bytes > 16 << 20 ? (rounds + 1) / 2 : rounds);
}

}  // namespace peers
