#pragma once

#include <list>
#include <string>

namespace lockstep {

/// Says, while it lives, that this thread reads a file, for errors of those that wait for it. Cost:
/// a lock and a copy of the path.
class ReadingNote {
 public:
  explicit ReadingNote(std::string path);
  ~ReadingNote();
  ReadingNote(const ReadingNote&) = delete;
  ReadingNote& operator=(const ReadingNote&) = delete;

 private:
  std::list<std::string>::iterator place_;
};

/// What a thread of this process has been reading longest; empty: nothing is read.
std::string longest_read();

}  // namespace lockstep
