#pragma once
// Reports a hang while it lasts: a rank that waits three times longer than ever before names, once,
// the ranks for which it waits.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/flight/operations.h"
#include "lockstep/comm/flight/patience.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep::inline internal {

/// A thread that reads its rank's flight recorder a few times per second, so that calls cost
/// nothing more. If a call is overdue (patience.h), it finds the late ranks and logs a warning. It
/// reads the recorders of its host and, through the store, those of other hosts. One rank of a
/// group does so; while its call lasts, no other rank reports.
class HangWatch {
 public:
  /// The watch of `ring`, which all groups of its rank share. It watches nothing if only this
  /// process sees the ring's memory.
  static std::shared_ptr<HangWatch> of(FlightRing& ring);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// Also watches calls of `group` (FlightRing::add_group()) from now on.
  void add(uint16_t group, const GroupSpec& spec);
  void remove(uint16_t group);

  /// Explains `error`, which ended a call of `spec`'s group on this rank. After a timeout, if the
  /// awaited ranks are themselves held up in other calls, the text begins with the ranks that hold
  /// them up. Queries other hosts, if there are any: up to a quarter of a second. `peer`: for point
  /// to point, its rank in the group.
  Error explain(const GroupSpec& spec, const Error& error, int peer = kAnyPeer);
  static constexpr int kAnyPeer = -1;
  /// Only that explanation, for a message: "rank 2 holds up rank 1: ...". Empty if `peer` waits for
  /// no rank, or ranks wait for each other, or nothing is known. Any thread.
  std::string why_held_up(const GroupSpec& spec, int peer);

 private:
  explicit HangWatch(FlightRing& ring);
  using Groups = std::map<uint16_t, std::shared_ptr<const GroupSpec>>;

  void run();
  void look(const Groups& groups);
  void report(const std::shared_ptr<const GroupSpec>& spec, const Overdue& call);
  std::string why_overdue(const GroupSpec& spec, const Overdue& call,
                          const RankOperations& operations);
  void take_back();
  std::shared_ptr<const GroupSpec> widest_with(const GroupSpec& spec);

  FlightRing& ring_;
  const uint32_t generation_ = fork_generation();
  Mutex mutex_;
  CondVar changed_;
  std::atomic<uint64_t> explained_ = 0;
  bool ending_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  Groups groups_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<uint16_t> ended_ LOCKSTEP_GUARDED_BY(mutex_);  // since the last look
  std::thread thread_;                                       // started with the first group

  // Used by the thread only.
  struct Claim {
    std::shared_ptr<const GroupSpec> spec;
    uint64_t number = 0;
    std::string token;
  };
  Patience patience_;
  std::vector<std::byte> image_;
  std::vector<Claim> claims_;  // claims of this rank, while their calls last
};

}  // namespace lockstep::inline internal
