#pragma once
// The one file of a folder's store: a header, and then every change, in order.
//
//   header := "lockstep store 1 ", 16 hex digits (id of the store), " ",
//             64 hex digits (proof of the job secret), "\n"
//   record := u32 size of body, u32 checksum of body (FNV-1a),
//             body: a request as in tcp/protocol.h; its id is the client, cancel ends that client
//
// A writer holds a lock on the file. If it is killed meanwhile, it leaves a truncated record, which
// no client reads and the next writer removes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/store/tcp/protocol.h"

namespace lockstep::inline internal {

class Journal {
 public:
  /// Opens or makes FOLDER/lockstep-store. Reads and writes nothing.
  Journal(const std::filesystem::path& folder, const std::string& secret);

  /// The right to change the folder. Between processes; one process locks once at a time.
  class Lock {
   public:
    /// Errors: kTimeout if others have it until the deadline.
    Lock(Journal& journal, Deadline deadline);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Journal& journal_;
  };

  /// Under the lock: begins a store, replacing the file's content. Errors: kIo.
  void begin();
  /// Under the lock: joins the existing store, if `anybody` else lives in it. False: there is none.
  /// Errors: kMismatch (not such a file, another version, another secret).
  bool join(bool anybody);
  /// Under the lock: removes the file.
  void remove();

  using OnRecord = std::function<void(RequestFrame)>;
  /// Passes on records appended since the last call; may be called without the lock. Errors:
  /// kPeerLost (this store has ended), kCorrupt.
  void read(const OnRecord& on_record);
  /// Under the lock, after read(): adds a record, which read() will not pass on here. Errors: kIo
  /// (disk full, ...; the file is unchanged), kUnavailable (the journal is full).
  void append(const RequestFrame& record);

  const std::filesystem::path& path() const { return path_; }

 private:
  void open();
  UniqueFd open_again() const;
  std::string read_part(int fd, int64_t from, int64_t max_bytes) const;

  std::filesystem::path path_;
  std::string proof_;
  std::string header_;  ///< Of the joined store.
  UniqueFd fd_;
  /// A forked child would keep the lock of a parent that is killed in mid-change.
  std::optional<NotInChild> not_in_child_;
  int64_t end_ = 0;  ///< End of the part that was read or written.
};

}  // namespace lockstep::inline internal
