#pragma once
// send and recv with tags, for engines that only carry bytes from rank to rank in order.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// What goes before each letter, as it is.
struct Envelope {
  int64_t count = 0;
  int32_t tag = 0;
  DType dtype = DType::kUint8;
  uint8_t unused[3] = {};
  int64_t bytes() const { return count * size_of(dtype); }
};
/// "4 float32, tag 1".
std::string describe(const Envelope& envelope);

/// The receiving end: letters that came before the one that is waited for are kept, by source.
/// Threads: one a source.
class Letters {
 public:
  explicit Letters(const GroupSpec& spec) : sources_(static_cast<size_t>(spec.size)) {}

  /// The first letter of `source` with this tag. What comes next from there is received by
  /// `receive(bytes)`, into memory that it returns (a std::vector<std::byte>), and by
  /// `receive_into(void*, bytes)`. Errors: theirs; kMismatch when it is another number or type of
  /// elements, or when there is no room for letters that nobody has asked for
  /// (tcp::kMaxEarlyBytes a source, as for the back end native).
  template <class Receive, class ReceiveInto>
  void take(const GroupSpec& spec, int source, const Envelope& wanted, void* data,
            const Receive& receive, const ReceiveInto& receive_into) {
    auto& from = sources_[static_cast<size_t>(source)];
    if (take_kept(from, spec, source, wanted, data)) return;
    while (true) {
      Envelope envelope;
      const std::vector<std::byte> bytes = receive(int64_t{sizeof envelope});
      std::memcpy(&envelope, bytes.data(), sizeof envelope);
      if (envelope.tag == wanted.tag) {
        check(spec, source, envelope, wanted);
        return receive_into(data, wanted.bytes());
      }
      check_room(from, spec, source, envelope);
      from.letters.push_back({envelope, receive(envelope.bytes())});
      from.bytes += envelope.bytes();
    }
  }

 private:
  struct Letter {
    Envelope envelope;
    std::vector<std::byte> data;
  };
  struct Source {
    std::deque<Letter> letters;
    int64_t bytes = 0;  // of all of them
  };
  static bool take_kept(Source& from, const GroupSpec& spec, int source, const Envelope& wanted,
                        void* data);
  static void check(const GroupSpec& spec, int source, const Envelope& came,
                    const Envelope& wanted);
  static void check_room(const Source& from, const GroupSpec& spec, int source,
                         const Envelope& came);

  std::vector<Source> sources_;
};

}  // namespace lockstep
