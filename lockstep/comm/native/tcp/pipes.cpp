#include "lockstep/comm/native/tcp/pipes.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"

namespace lockstep::tcp {
namespace {

/// Up to here letter and data go in one packet; copying is cheaper than a second system call.
constexpr int64_t kOnePacketBytes = 8192;

std::string describe(const Letter& letter) {
  return fmt::format("{} {}, tag {}", letter.count, to_string(letter.dtype), letter.tag);
}

void check_same(const Letter& expected, const Letter& got, const std::string& peer) {
  if (expected == got) return;
  throw Error(ErrorCode::kMismatch,
              fmt::format("recv of {}, but {} sent {}", describe(expected), peer, describe(got)));
}

/// Runs `body`; its errors say which call they come from.
template <class Body>
void in_call(const char* call, const Letter& letter, const std::string& peer, Body body) {
  try {
    body();
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{} of {} ({}): {}", call, describe(letter), peer, error.what()));
  }
}

}  // namespace

Pipes::Pipes(std::vector<UniqueFd> sockets, std::function<std::string(int)> name, int world_rank)
    : name_(std::move(name)), world_rank_(world_rank), pipes_(sockets.size()) {
  for (size_t peer = 0; peer < sockets.size(); ++peer) pipes_[peer].fd = std::move(sockets[peer]);
}

Pipes::~Pipes() = default;

void Pipes::send(int peer, int tag, const void* data, int64_t count, DType dtype,
                 Deadline deadline) {
  const Letter letter{Letter::kMagic, tag, count, dtype, {}};
  const int fd = pipes_[static_cast<size_t>(peer)].fd.get();
  const std::string name = name_(peer);
  in_call("send", letter, name, [&] {
    strike(Phase::kExchanging);
    const auto bytes = static_cast<size_t>(letter.bytes());
    if (letter.bytes() <= kOnePacketBytes) {
      std::array<std::byte, kLetterBytes + kOnePacketBytes> packet;
      std::memcpy(packet.data(), &letter, kLetterBytes);
      if (bytes > 0) std::memcpy(packet.data() + kLetterBytes, data, bytes);
      send_all(fd, packet.data(), kLetterBytes + bytes, deadline, name);
    } else {
      send_all(fd, &letter, kLetterBytes, deadline, name);
      strike(Phase::kSending);
      send_all(fd, data, bytes, deadline, name);
    }
    strike(Phase::kExchanged);
  });
}

void Pipes::recv(int peer, int tag, void* data, int64_t count, DType dtype, Deadline deadline) {
  const Letter expected{Letter::kMagic, tag, count, dtype, {}};
  in_call("recv", expected, name_(peer), [&] {
    strike(Phase::kExchanging);
    receive_letter(peer, tag, data, expected, deadline);
    strike(Phase::kExchanged);
  });
}

void Pipes::receive_letter(int peer, int tag, void* data, const Letter& expected,
                           Deadline deadline) {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  const std::string name = name_(peer);
  if (take_early(pipe, name, data, expected)) return;
  while (true) {
    std::array<std::byte, kLetterBytes> bytes;
    recv_all(pipe.fd.get(), bytes.data(), bytes.size(), deadline, name);
    const Letter got = parse_letter(bytes);
    if (got.tag == tag) {
      check_same(expected, got, name);
      strike(Phase::kReceiving);
      recv_all(pipe.fd.get(), data, static_cast<size_t>(got.bytes()), deadline, name);
      return;
    }
    keep(pipe, name, got, deadline);
  }
}

bool Pipes::take_early(Pipe& pipe, const std::string& peer, void* data, const Letter& expected) {
  const auto found = std::find_if(pipe.early.begin(), pipe.early.end(), [&](const Early& early) {
    return early.letter.tag == expected.tag;
  });
  if (found == pipe.early.end()) return false;
  check_same(expected, found->letter, peer);
  const int64_t bytes = found->letter.bytes();
  if (bytes > 0) std::memcpy(data, found->data.get(), static_cast<size_t>(bytes));
  pipe.early_bytes -= bytes;
  pipe.early.erase(found);
  return true;
}

void Pipes::keep(Pipe& pipe, const std::string& peer, const Letter& letter, Deadline deadline) {
  if (letter.bytes() > kMaxEarlyBytes - pipe.early_bytes) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{} sent {} first, and there is no room to keep it: receive letters of "
                            "this size in the order in which they are sent",
                            peer, describe(letter)));
  }
  const auto bytes = static_cast<size_t>(letter.bytes());
  Early early{letter, std::make_unique_for_overwrite<std::byte[]>(bytes)};
  recv_all(pipe.fd.get(), early.data.get(), bytes, deadline, peer);
  pipe.early.push_back(std::move(early));
  pipe.early_bytes += letter.bytes();
}

void Pipes::shut_down() noexcept {
  for (const auto& pipe : pipes_) {
    if (pipe.fd) ::shutdown(pipe.fd.get(), SHUT_RDWR);
  }
}

}  // namespace lockstep::tcp
