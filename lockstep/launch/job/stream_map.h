#pragma once
// Which output streams of which local ranks an option (--redirects, --tee) means.

#include <map>
#include <string>

namespace lockstep {

struct Streams {
  bool out = false;
  bool err = false;
  bool any() const { return out || err; }
};

/// One choice for all local ranks, or one for each that is named and none for the others.
class StreamMap {
 public:
  StreamMap() = default;

  /// torchrun's grammar: V, or LOCAL_RANK:V,LOCAL_RANK:V,... where V is 0 (none), 1 (stdout), 2
  /// (stderr) or 3 (both). Unlike torchrun's, local ranks may have any number of digits.
  /// Errors: kInvalidArgument naming `what`.
  static StreamMap parse(const std::string& text, const std::string& what);

  Streams of(int local_rank) const;
  bool any() const;
  /// The highest local rank named; -1 when none is.
  int highest() const { return by_rank_.empty() ? -1 : by_rank_.rbegin()->first; }

 private:
  Streams all_;
  std::map<int, Streams> by_rank_;
};

}  // namespace lockstep
