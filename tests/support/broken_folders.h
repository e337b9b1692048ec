#pragma once
// Simulates a disk that breaks while the names of a folder are read.

namespace lockstep::testing {

/// While it lives, all folders that this process reads by the C++ library have one name, "." and
/// ".." apart; the next reading fails with `error`. One at a time.
class BrokenFolders {
 public:
  explicit BrokenFolders(int error);
  ~BrokenFolders();
  BrokenFolders(const BrokenFolders&) = delete;
  BrokenFolders& operator=(const BrokenFolders&) = delete;
};

}  // namespace lockstep::testing
