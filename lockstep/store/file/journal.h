#pragma once
// The one file of a folder's store: a header, and then every change in the order in which it was
// made.
//
//   header := "lockstep store 1 ", 16 hex digits (which store this is), " ", 64 hex digits (proof
//   of
//             the job secret), "\n"
//   record := u32 size of body, u32 checksum of body (FNV-1a), body: a request as in
//   tcp/protocol.h,
//             whose id is the client; cancel: that client is gone
//
// Who appends holds a lock on the file. A process that was killed meanwhile leaves a record that is
// cut short; whoever appends next removes it, and nobody reads it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/store/tcp/protocol.h"

namespace lockstep {

class Journal {
 public:
  /// Opens or makes FOLDER/lockstep-store. Nothing is read or written.
  Journal(const std::filesystem::path& folder, const std::string& secret);

  /// The right to change the folder. Between processes; one process locks once at a time.
  class Lock {
   public:
    /// Errors: kTimeout when others have it until the deadline.
    Lock(Journal& journal, Deadline deadline);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Journal& journal_;
  };

  /// Under the lock: begins a store, whatever the file has. Errors: kIo.
  void begin();
  /// Under the lock: joins the store that is there, if `anybody` else lives in it. False: there is
  /// none. Errors: kMismatch (not such a file, another version, another secret).
  bool join(bool anybody);
  /// Under the lock: removes the file.
  void remove();

  using OnRecord = std::function<void(RequestFrame)>;
  /// Hands out what was appended since the last call; may be called without the lock. Errors:
  /// kPeerLost (this store is no more), kCorrupt.
  void read(const OnRecord& on_record);
  /// Under the lock, after read(): adds a record, which read() will not hand out here. Errors: kIo
  /// (disk full, ...; the file is as it was), kUnavailable (it is full).
  void append(const RequestFrame& record);

  const std::filesystem::path& path() const { return path_; }

 private:
  UniqueFd open_again() const;
  std::string read_part(int fd, int64_t from, int64_t max_bytes) const;

  std::filesystem::path path_;
  std::string proof_;
  std::string header_;  ///< Of the store that was joined.
  UniqueFd fd_;
  int64_t end_ = 0;  ///< Of what was read or written.
};

}  // namespace lockstep
