#include "lockstep/base/reading_note.h"

#include <utility>

#include "lockstep/base/mutex.h"

namespace lockstep::inline internal {
namespace {

struct Board {
  Mutex mutex;
  std::list<std::string> paths LOCKSTEP_GUARDED_BY(mutex);  // in the order of their beginning
};

/// Never destroyed: threads may read until the process ends.
Board& board() {
  static auto* const only = new Board;
  return *only;
}

}  // namespace

ReadingNote::ReadingNote(std::string path) {
  std::list<std::string> one;
  one.push_back(std::move(path));
  place_ = one.begin();
  const MutexLock lock(board().mutex);
  board().paths.splice(board().paths.end(), one);
}

ReadingNote::~ReadingNote() {
  std::list<std::string> one;
  const MutexLock lock(board().mutex);
  one.splice(one.end(), board().paths, place_);
}

std::string longest_read() {
  const MutexLock lock(board().mutex);
  return board().paths.empty() ? "" : board().paths.front();
}

}  // namespace lockstep::inline internal
