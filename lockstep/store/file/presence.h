#pragma once
// Live clients of a folder's store. Each has a file FOLDER/lockstep-client-ID, locked while its
// process lives, with a number that grows with each heartbeat.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {

class Presence {
 public:
  explicit Presence(std::filesystem::path folder);
  ~Presence();  ///< Removes its own file, unless leave_behind() was called.
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  uint64_t id() const { return id_; }
  /// Makes and locks the file. Errors: kIo.
  void begin();
  /// A heartbeat.
  void beat();

  /// The number in the file of `client`; nothing: its process has ended.
  std::optional<uint64_t> look(uint64_t client) const;
  /// Removes the file of a dead client.
  void bury(uint64_t client) const;
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
  uint64_t beats_ = 0;
  bool is_remote_ = false;  ///< On NFS: writes must be flushed to the server.
};

}  // namespace lockstep
