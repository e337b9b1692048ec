#pragma once

#include <list>
#include <string>

namespace lockstep::inline internal {

/// Records, while it lives, that this thread reads a file, for errors of threads that wait for it.
/// Cost: a lock and a copy of the path.
class ReadingNote {
 public:
  explicit ReadingNote(std::string path);
  ~ReadingNote();
  ReadingNote(const ReadingNote&) = delete;
  ReadingNote& operator=(const ReadingNote&) = delete;

 private:
  std::list<std::string>::iterator place_;
};

/// The file that a thread of this process has been reading longest; empty: none.
std::string longest_read();

}  // namespace lockstep::inline internal
