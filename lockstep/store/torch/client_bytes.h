#pragma once
// What a server keeps in memory for its clients' sake, of each and of all together. Pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace lockstep::inline internal {

class ClientBytes {
 public:
  /// What is kept for `client` from now on; 0 forgets it.
  void set(uint64_t client, size_t bytes) {
    const auto found = of_client_.find(client);
    if (found != of_client_.end()) {
      total_ -= found->second;
      if (bytes == 0) of_client_.erase(found);
    }
    if (bytes == 0) return;
    of_client_[client] = bytes;
    total_ += bytes;
  }

  size_t total() const { return total_; }
  /// The client with the most. Only if total() is not 0. Cost: O(clients with any).
  uint64_t largest() const {
    return std::max_element(of_client_.begin(), of_client_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

 private:
  std::unordered_map<uint64_t, size_t> of_client_;  ///< None has 0.
  size_t total_ = 0;
};

}  // namespace lockstep::inline internal
