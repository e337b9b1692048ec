#pragma once
// Which clients of a folder's store are alive: each has a file FOLDER/lockstep-client-ID, locked
// for as long as its process lives, with a number in it that grows with each sign of life.

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
  /// A sign of life.
  void beat();

  /// The number in the file of `client`; nothing: its process has ended.
  std::optional<uint64_t> look(uint64_t client) const;
  /// Removes the file of a client that is no more.
  void bury(uint64_t client) const;
  /// Others that live; the files of those that do not are removed. Errors: kInvalidArgument when
  /// something lies in the folder that is not a store's; names it.
  std::vector<uint64_t> others() const;

 private:
  std::filesystem::path path_of(uint64_t client) const;

  std::filesystem::path folder_;
  uint64_t id_;
  UniqueFd fd_;
  std::optional<NotInChild> not_in_child_;  // it holds the lock, by which others know the end
  const uint32_t generation_ = fork_generation();
  uint64_t beats_ = 0;
  bool is_remote_ = false;  ///< On NFS: what is written must be sent.
};

}  // namespace lockstep
