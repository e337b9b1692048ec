#pragma once
// Names a hang while it lasts: who waits three times longer than ever says for whom, once.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/flight/news.h"
#include "lockstep/comm/flight/patience.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// A thread that looks at its rank's flight recorder a few times a second, so that calls pay
/// nothing for it. Where one is overdue (patience.h) it finds out, from the recorders of its host
/// and, through the store, from the other hosts, who is late, and logs a warning. One rank of a
/// group does, and as long as its call lasts no other says anything.
class HangWatch {
 public:
  /// That of `ring`, which all groups of its rank share. It looks at nothing where the ring is in
  /// memory that only this process sees.
  static std::shared_ptr<HangWatch> of(FlightRing& ring);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// From now on also calls of `group` (FlightRing::add_group()) are watched.
  void add(uint16_t group, const GroupSpec& spec);
  void remove(uint16_t group);

  /// `error`, which ended a call of `spec`'s group that this rank is in. Where its time was over
  /// and the ranks that it waited for are themselves held up in other calls, with who holds them
  /// up, first. Asks the other hosts, where there are any: up to a quarter of a second. `peer`: of
  /// point to point, its rank in the group.
  Error explain(const GroupSpec& spec, const Error& error, int peer = kAnyPeer);
  static constexpr int kAnyPeer = -1;
  /// That alone, for a letter: "rank 2 holds up rank 1: ..."; empty where `peer` waits for nobody,
  /// or ranks wait for each other, or nothing is known. Any thread.
  std::string why_held_up(const GroupSpec& spec, int peer);

 private:
  explicit HangWatch(FlightRing& ring);
  using Groups = std::map<uint16_t, std::shared_ptr<const GroupSpec>>;

  void run();
  void look(const Groups& groups);
  void report(const std::shared_ptr<const GroupSpec>& spec, const Overdue& call);
  std::string why_overdue(const GroupSpec& spec, const Overdue& call, const RankNews& news);
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

  // The thread's.
  struct Claim {
    std::shared_ptr<const GroupSpec> spec;
    uint64_t number = 0;
    std::string token;
  };
  Patience patience_;
  std::vector<std::byte> image_;
  std::vector<Claim> claims_;  // of this rank, while their calls last
};

}  // namespace lockstep
