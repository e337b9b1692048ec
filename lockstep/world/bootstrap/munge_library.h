#pragma once
// MUNGE: a daemon on each host of a cluster, with a common key. It certifies the user who encoded a
// text, and lets only that user decode it. Source: munge(3), munge_encode(3) of MUNGE 0.5.

#include <memory>
#include <string>

namespace lockstep::inline internal {

/// libmunge, loaded at its first use. Thread-safe.
class Munge {
 public:
  /// Errors: kUnavailable (no libmunge.so.2).
  static const Munge& get();

  /// A credential: one line of printable ASCII. decode() takes it once a host, within five minutes,
  /// in a process of this user. Errors: kUnavailable with the reason (no munged answers).
  std::string encode(const std::string& text) const;

  /// A text that a process of this user has encoded, on any host with this key. Errors: kCorrupt
  /// with the reason (of another user, too old, used before, no credential), kUnavailable.
  std::string decode(const std::string& credential) const;

 private:
  struct Functions;
  explicit Munge(void* library);
  ~Munge();

  std::unique_ptr<const Functions> functions_;
};

/// Whether there is a libmunge, and a munged that answers.
bool munge_answers();

/// Why munged does not answer although libmunge is installed, with its socket; else "".
std::string why_no_munge();

}  // namespace lockstep::inline internal
