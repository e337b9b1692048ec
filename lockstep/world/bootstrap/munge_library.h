#pragma once
// MUNGE: a daemon on each host of a cluster, with one key, says which user a text is from and lets
// only the user read it for whom it is. Source: munge(3), munge_encode(3) of MUNGE 0.5.

#include <memory>
#include <string>

namespace lockstep {

/// libmunge, which is loaded when it is needed first. Any thread may call it.
class Munge {
 public:
  /// Errors: kUnavailable (no libmunge.so.2).
  static const Munge& get();

  /// A credential: one line of printable ASCII, that decode() reads once a host, within five
  /// minutes, in a process of this user. Errors: kUnavailable (no munged answers; says why).
  std::string encode(const std::string& text) const;

  /// What a process of this user has encoded, on any host with this key. Errors: kCorrupt (of
  /// another user, too old, read before, no credential; says which), kUnavailable.
  std::string decode(const std::string& credential) const;

 private:
  struct Functions;
  explicit Munge(void* library);
  ~Munge();

  std::unique_ptr<const Functions> functions_;
};

/// Is there a libmunge, and a munged that answers?
bool munge_answers();

/// Where it does not, though libmunge is installed: why, with the socket that was tried. Else "".
std::string why_no_munge();

}  // namespace lockstep
