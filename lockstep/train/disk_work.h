#pragma once
// Work of all ranks that a slow disk may delay.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// Collective, from construction until finish(). Each rank does its own work meanwhile, parts of
/// which a slow disk may delay. A finished rank waits for a reading rank until that has read for
/// `limit`, beyond the group's timeout, which is meant for steps. A thread on each rank reports
/// several times a second whether its rank is done. It stops once its rank has read nothing for
/// some seconds, until the next read. So a dead rank is still detected at once. A rank that hangs,
/// also in computation, is detected after the group's timeout, or those seconds later. Nothing else
/// may use the group until finish().
class DiskWork {
 public:
  /// `computes`: time for which a rank that does not read still counts as alive.
  DiskWork(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
           std::chrono::milliseconds computes = std::chrono::seconds(10));
  ~DiskWork();  ///< Without finish() this rank gives up; the others detect it.
  DiskWork(const DiskWork&) = delete;
  DiskWork& operator=(const DiskWork&) = delete;

  /// Does the part that the disk may delay. Errors: those of `work`.
  void read(const std::function<void()>& work);
  /// Reports that this rank is done; returns when all are. Errors: those of the group; kTimeout on
  /// the ranks that are not late. It names `what`, the late ranks and the file that each reads (see
  /// ReadingNote).
  void finish();

 private:
  class Heartbeats;
  std::unique_ptr<Heartbeats> heartbeats_;  // null in a group of one
};

/// Collective. The same for work that consists of reading alone. Errors: an exception of `work`, on
/// that rank, and those of DiskWork. Cost, if all are quick: a thread and one reduction.
void do_disk_work(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                  const std::function<void()>& work);

}  // namespace lockstep::inline internal
