#pragma once
// One line from rank 0 to all others before they have met, by what the launcher, the user
// or the cluster provides: PMIx, PMI, a shared folder, MUNGE.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// Every rank makes one, calls publish() (rank 0) or receive() (the others) and drops it. Some are
/// collective underneath: all ranks take the same channel.
class RankExchange {
 public:
  virtual ~RankExchange() = default;

  /// Rank 0's line: printable ASCII without blanks, at most kMaxExchangeBytes. May return before
  /// anybody has it. Errors: kTimeout, kUnavailable, kIo.
  virtual void publish(const std::string& line, Deadline deadline) = 0;

  /// Waits for that line. May be called again where `may_change()`: a line of an earlier job could
  /// have been there. Errors: kTimeout, kUnavailable, kIo, kCorrupt.
  virtual std::string receive(Deadline deadline) = 0;
  virtual bool may_change() const { return false; }
};

/// What every channel carries: PMI's limit for a value.
inline constexpr size_t kMaxExchangeBytes = 1000;

/// The first of id.channels that works here. Errors: kUnavailable with each one's reason.
std::shared_ptr<RankExchange> open_exchange(const Identity& id, const Environment& environment);

// Each throws kUnavailable when it does not work here, before it has sent anything.
std::shared_ptr<RankExchange> open_pmix_exchange();
/// `fd`: PMI_FD, which is left open.
std::shared_ptr<RankExchange> open_pmi_exchange(int fd);
/// `environment`: with PMI_PORT and PMI_ID.
std::shared_ptr<RankExchange> open_pmi_port_exchange(const Environment& environment);
/// Rank 0 runs at `host`, and gives what it publishes at one of `ports`, the same for all ranks of
/// `job`, to processes of this user on all hosts where munged has the same key.
std::shared_ptr<RankExchange> open_munge_exchange(const std::string& host,
                                                  const std::vector<int>& ports,
                                                  const std::string& job);
/// `name`: the same on all ranks, and of no other job that is running. `alone`: rank 0 makes sure
/// of that, and refuses to take the place of one that lives; else the later job is the one that
/// counts.
std::shared_ptr<RankExchange> open_folder_exchange(const std::string& folder,
                                                   const std::string& name, bool alone = false);

}  // namespace lockstep
