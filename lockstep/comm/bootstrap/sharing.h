#pragma once
// Shared memory between ranks is tested, not assumed: World::host_id only proposes it.
//
// Each rank creates a sample of memory. The first rank of a proposed host leads it. The others open
// its sample as they would open the group's memory, and look for its mark. A rank that cannot open
// it is a host of its own.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/shm/fd_server.h"

namespace lockstep::inline internal {

/// A few bytes of memory that other processes can open in the same way as a group's memory.
class Sample {
 public:
  /// Without memory, no process will be able to open it.
  Sample();
  /// "MARK " and its shm::RemoteFd, for the store; empty without memory.
  const std::string& place() const { return place_; }

 private:
  std::shared_ptr<const shm::FdServer> fd_server_;
  UniqueFd fd_;
  std::string place_;
};

/// The reason why this process cannot open the sample at `place`. Empty: it can, and the mark is
/// right.
std::string why_not_shared(const std::string& place);

/// By rank: the lowest rank that has the same host id.
std::vector<int> leaders_of(const std::vector<std::string>& host_ids);
/// `host_ids`, with each rank of `apart` as a host of its own.
std::vector<std::string> settled_hosts(std::vector<std::string> host_ids,
                                       const std::vector<int>& apart);

}  // namespace lockstep::inline internal
