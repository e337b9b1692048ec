#pragma once
// Work of all ranks that a disk may hold up.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/process_group.h"

namespace lockstep {

/// Collective, from its making until finish(). Each rank does work of its own meanwhile, parts of
/// which a disk may hold up for long: who is done waits for a rank that reads until that has read
/// for `limit`, and not only for the group's timeout, which is made for steps. Meanwhile a thread
/// on each rank says to the others, several times a second, whether it is done; once its rank has
/// read nothing for some seconds it says nothing more until it reads. So a rank that died is still
/// found out at once, and one that hangs, as a whole or while it computes, after the group's
/// timeout, or those seconds later. Until finish() nobody else may use the group.
class DiskWork {
 public:
  /// `computes`: for so long a rank that does not read says that it lives.
  DiskWork(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
           std::chrono::milliseconds computes = std::chrono::seconds(10));
  ~DiskWork();  ///< Without finish(): this rank gives up, which the others find out.
  DiskWork(const DiskWork&) = delete;
  DiskWork& operator=(const DiskWork&) = delete;

  /// Does what a disk may hold up. Errors: those of `work`.
  void read(const std::function<void()>& work);
  /// This rank is done; returns when all are. Errors: kTimeout, but on ranks that are late, naming
  /// `what`, those ranks and the file that each is reading (see ReadingNote); those of the group.
  void finish();

 private:
  class LifeSigns;
  std::unique_ptr<LifeSigns> signs_;  // null in a group of one
};

/// Collective. The same where all of the work is what a disk may hold up. Errors: what `work`
/// throws, on that rank, and those of DiskWork. Cost, when all are quick: a thread and one
/// reduction.
void do_disk_work(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                  const std::function<void()>& work);

}  // namespace lockstep
