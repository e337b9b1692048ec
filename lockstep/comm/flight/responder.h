#pragma once
// Who speaks for a host when none of its ranks is in the group's call.

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// A thread of a host's first rank in a group, which sleeps until a rank of another host asks for
/// news of this one, through the store; then it calls `answer(with_stacks)`, once. In groups of one
/// host, and on the other ranks, there is none. It ends with the object.
class Responder {
 public:
  Responder(const GroupSpec& spec, std::function<void(bool with_stacks)> answer);
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  /// Has the responder of `host` (as make_topology() counts) answer. Errors: the store's.
  static void ask(const GroupSpec& spec, int host, bool with_stacks, Deadline deadline);

 private:
  std::function<void()> stop_;
  std::thread thread_;
};

}  // namespace lockstep
