#pragma once
// The files of a folder's live clients. Each client has FOLDER/lockstep-client-ID, locked while its
// process lives, with a number that grows with each heartbeat.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

class ClientFiles {
 public:
  explicit ClientFiles(std::filesystem::path folder);
  ~ClientFiles();  ///< Removes its own file, unless this is a forked child.
  ClientFiles(const ClientFiles&) = delete;
  ClientFiles& operator=(const ClientFiles&) = delete;

  uint64_t id() const { return id_; }
  /// Makes and locks the file. Errors: kIo.
  void create_own();
  /// Increases the number in its own file.
  void write_heartbeat();

  /// The number in the file of `client`; nothing: its process has ended.
  std::optional<uint64_t> read_heartbeat(uint64_t client) const;
  /// Removes the file of a dead client.
  void remove(uint64_t client) const;
  /// Other live clients; removes the files of dead ones. Errors: kInvalidArgument if something else
  /// is in the folder; names it.
  std::vector<uint64_t> others() const;

 private:
  std::filesystem::path path_of(uint64_t client) const;

  std::filesystem::path folder_;
  uint64_t id_;
  UniqueFd fd_;
  std::optional<NotInChild> not_in_child_;  // it holds the lock, by which others notice the end
  const uint32_t generation_ = fork_generation();
  uint64_t heartbeats_ = 0;
  bool is_remote_ = false;  ///< On NFS: writes must be flushed to the server.
};

}  // namespace lockstep::inline internal
