// Bytes of clients of torch's store, as its server meets them: the first byte chooses how the
// stream is cut, and the stream is shared out to three clients in turn.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/store/torch/torch_state.h"

namespace {

using namespace lockstep;

constexpr size_t kStoreBytes = 1 << 16;

void require(bool holds) {
  if (!holds) std::abort();
}

class Clients {
 public:
  void feed(size_t client, std::string_view bytes) {
    if (gone_[client]) return;
    try {
      readers_[client].append(bytes);
      while (auto request = readers_[client].next()) carry_out(client, std::move(*request));
    } catch (const Error&) {
      // Refused with a reason: what must happen to most inputs.
      state_.drop(client);
      gone_[client] = true;
    }
    require(state_.bytes() <= kStoreBytes);
  }

  ~Clients() {
    for (size_t client = 0; client < readers_.size(); ++client) state_.drop(client);
    require(state_.num_waiting() == 0);
  }

 private:
  void carry_out(size_t client, TorchRequest request) {
    require(request.op != TorchOp::kValidate);
    for (const auto& key : request.keys) require(key.size() <= kMaxTorchKeyBytes);
    const size_t waited = state_.num_waiting();
    const auto replies = state_.submit(client, std::move(request));
    size_t to_others = 0;
    for (const auto& reply : replies) {
      require(reply.client < readers_.size());
      require(!gone_[reply.client] && !reply.bytes.empty());
      if (reply.client != client) ++to_others;
    }
    // Who is woken waits no more; at most this client begins to wait.
    require(state_.num_waiting() + to_others <= waited + 1);
  }

  TorchState state_{kStoreBytes};
  std::array<TorchReader, 3> readers_;
  std::array<bool, 3> gone_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = std::max<size_t>(1, data[0]);
  Clients clients;
  for (size_t turn = 0; !stream.empty(); ++turn) {
    const auto part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    clients.feed(turn % 3, part);
  }
  return 0;
}
