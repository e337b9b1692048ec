#pragma once
// Who shares memory with whom is tried, not guessed: World::host_id only proposes it.
//
// Each rank lays out a sample of memory. The first rank of a proposed host leads it; the others
// open its sample as they would open the group's memory, and look for its mark. Who cannot is a
// host of its own.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/shm/door.h"

namespace lockstep {

/// A few bytes of memory that other processes can open as they open a group's.
class Sample {
 public:
  /// Where there is no memory, nobody will be able to open it.
  Sample();
  /// "MARK " and its shm::RemoteFd, for the store; empty where there is no memory.
  const std::string& place() const { return place_; }

 private:
  std::shared_ptr<const shm::Door> door_;
  UniqueFd fd_;
  std::string place_;
};

/// Why this process cannot open the sample at `place`; empty: it can, and it is that one.
std::string why_not_shared(const std::string& place);

/// By rank: the lowest rank that has the same host id.
std::vector<int> leaders_of(const std::vector<std::string>& host_ids);
/// `host_ids`, where each rank of `apart` is a host of its own.
std::vector<std::string> settled_hosts(std::vector<std::string> host_ids,
                                       const std::vector<int>& apart);

}  // namespace lockstep
