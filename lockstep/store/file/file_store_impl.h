#pragma once
// The store that join_file_store() returns; see file_store.h.

#include <map>
#include <string>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/file/journal.h"
#include "lockstep/store/file/presence.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"
#include "lockstep/store/tcp/life_signs.h"

namespace lockstep {

/// Every client carries out all changes of the journal on a StoreState of its own, so all have the
/// same keys, versions and holders. What waits, waits in that state; one of the threads that wait
/// watches the folder.
class FileStore final : public RequestStore {
 public:
  FileStore(std::filesystem::path folder, const std::string& secret, Deadline deadline);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

 private:
  /// A call in progress; it lives on its thread's stack.
  struct Call {
    std::optional<StoreReply> reply;
    CondVar wake;  ///< Its reply is there, or nobody watches the folder.
  };
  class Registration;

  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store in " + folder_.string(); }

  StoreReply change(StoreRequest request, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  StoreReply ask(const StoreRequest& request, Deadline deadline, MutexLock& lock)
      LOCKSTEP_REQUIRES(mutex_);
  std::optional<StoreReply> hold_at_once(const StoreRequest& request) LOCKSTEP_REQUIRES(mutex_);

  void step(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void look_around(Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  std::vector<uint64_t> find_dead() LOCKSTEP_REQUIRES(mutex_);
  void end_clients(const std::vector<uint64_t>& dead, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void catch_up() LOCKSTEP_REQUIRES(mutex_);
  void carry_out(RequestFrame record) LOCKSTEP_REQUIRES(mutex_);
  void deliver(std::vector<StoreAnswer> answers) LOCKSTEP_REQUIRES(mutex_);

  const std::filesystem::path folder_;
  const UniqueFd inotify_;

  Mutex mutex_;
  Presence presence_ LOCKSTEP_GUARDED_BY(mutex_);
  Journal journal_ LOCKSTEP_GUARDED_BY(mutex_);
  StoreState state_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_request_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call*> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  bool watched_ LOCKSTEP_GUARDED_BY(mutex_) = false;  ///< A thread watches the folder.
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);      ///< Why this client is no more; empty: it is.

  ListeningClock clock_ LOCKSTEP_GUARDED_BY(mutex_);
  LifeSigns life_signs_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> beats_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Seen last, of holders.
  Deadline next_look_ LOCKSTEP_GUARDED_BY(mutex_) = Deadline::after(std::chrono::seconds(0));
};

}  // namespace lockstep
