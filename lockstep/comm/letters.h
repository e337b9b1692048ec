#pragma once
// send and recv with tags, for engines that only carry bytes from rank to rank in order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "lockstep/comm/copy.h"
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

/// The receiving end: letters that came before the one that is waited for are kept, by source.
/// Threads: one a source.
class Letters {
 public:
  explicit Letters(const GroupSpec& spec) : kept_(static_cast<size_t>(spec.size)) {}

  /// The first letter of `source` with this tag. `next_envelope(Envelope&)` and `next_bytes(void*,
  /// int64_t)` receive what comes next from there. Errors: theirs; kMismatch when it is another
  /// number or type of elements.
  template <class NextEnvelope, class NextBytes>
  void take(const GroupSpec& spec, int source, const Envelope& wanted, void* data,
            const NextEnvelope& next_envelope, const NextBytes& next_bytes) {
    auto& kept = kept_[static_cast<size_t>(source)];
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const Letter& letter) {
      return letter.envelope.tag == wanted.tag;
    });
    if (found != kept.end()) {
      check(spec, source, found->envelope, wanted);
      copy_bytes(data, found->data.data(), wanted.bytes());
      kept.erase(found);
      return;
    }
    while (true) {
      Envelope envelope;
      next_envelope(envelope);
      if (envelope.tag == wanted.tag) {
        check(spec, source, envelope, wanted);
        return next_bytes(data, wanted.bytes());
      }
      auto& other = kept.emplace_back();
      other.envelope = envelope;
      other.data.resize(static_cast<size_t>(envelope.bytes()));
      next_bytes(other.data.data(), envelope.bytes());
    }
  }

 private:
  struct Letter {
    Envelope envelope;
    std::vector<std::byte> data;
  };
  static void check(const GroupSpec& spec, int source, const Envelope& came,
                    const Envelope& wanted);

  std::vector<std::deque<Letter>> kept_;
};

}  // namespace lockstep
