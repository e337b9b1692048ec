#pragma once
// One line from rank 0 to all others before they have met, through PMIx, PMI, a shared folder or
// MUNGE.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// Every rank makes one, calls publish() (rank 0) or receive() (the others) and destroys it. Some
/// are collective underneath: all ranks use the same channel.
class RankExchange {
 public:
  virtual ~RankExchange() = default;

  /// Publishes rank 0's line: printable ASCII without blanks, at most kMaxExchangeBytes. May return
  /// before any rank has it. Errors: kTimeout, kUnavailable, kIo.
  virtual void publish(const std::string& line, Deadline deadline) = 0;

  /// Waits for that line. May be called again if `may_change()`: the line may have been an earlier
  /// job's. Errors: kTimeout, kUnavailable, kIo, kCorrupt.
  virtual std::string receive(Deadline deadline) = 0;
  virtual bool may_change() const { return false; }
};

/// Limit of all channels: PMI's for a value.
inline constexpr size_t kMaxExchangeBytes = 1000;

/// The first of id.channels that works here. Errors: kUnavailable with the reason for each.
std::shared_ptr<RankExchange> open_exchange(const Identity& id, const Environment& environment);

// Each throws kUnavailable if it does not work here, before it has sent anything.
std::shared_ptr<RankExchange> open_pmix_exchange();
/// `fd`: PMI_FD, which stays open.
std::shared_ptr<RankExchange> open_pmi_exchange(int fd);
/// `environment`: with PMI_PORT and PMI_ID.
std::shared_ptr<RankExchange> open_pmi_port_exchange(const Environment& environment);
/// Rank 0 runs at `host`, and sends its line at one of `ports`, the same for all ranks of `job`. It
/// goes to processes of this user on all hosts where munged has the same key.
std::shared_ptr<RankExchange> open_munge_exchange(const std::string& host,
                                                  const std::vector<int>& ports,
                                                  const std::string& job);
/// `name`: the same on all ranks, and different from that of other running jobs. `alone`: rank 0
/// checks this, and refuses to replace a live job; otherwise the later job wins.
std::shared_ptr<RankExchange> open_folder_exchange(const std::string& folder,
                                                   const std::string& name, bool alone = false);

}  // namespace lockstep::inline internal
