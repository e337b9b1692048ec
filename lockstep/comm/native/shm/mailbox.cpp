#include "lockstep/comm/native/shm/mailbox.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/quiet_thread.h"
#include "lockstep/comm/native/shm/stream_copy.h"

namespace lockstep::shm {
namespace {

/// Larger ones are offered: what the kernel does then costs less than the second copy.
constexpr int64_t kOfferBytes = kChannelBytes / 2;
/// Larger ones do not stay in the cache of the core that writes them.
constexpr int64_t kCachedBytes = 32 << 10;
/// Larger ones are copied by two threads: starting one costs some 30 us.
constexpr int64_t kHalvedBytes = 1 << 20;
/// What one system call copies: it cannot be interrupted.
constexpr int64_t kMostAtOnce = 64 << 20;

/// Copies between `data` and the ring from stream position `at` on, around its end.
template <class Copy>
void around(uint64_t at, int64_t bytes, const Copy& copy) {
  const auto place = static_cast<int64_t>(at % kChannelBytes);
  const int64_t first = std::min(bytes, kChannelBytes - place);
  copy(place, 0, static_cast<size_t>(first));
  if (first < bytes) copy(0, first, static_cast<size_t>(bytes - first));
}

void into_ring(Channel& channel, uint64_t at, const void* data, int64_t bytes) {
  around(at, bytes, [&](int64_t place, int64_t offset, size_t size) {
    const auto* from = static_cast<const std::byte*>(data) + offset;
    if (bytes <= kCachedBytes) {
      std::memcpy(channel.ring + place, from, size);
    } else {
      copy_past_cache(channel.ring + place, from, size);
    }
  });
}

void out_of_ring(const Channel& channel, uint64_t at, void* data, int64_t bytes) {
  around(at, bytes, [&](int64_t place, int64_t offset, size_t size) {
    std::memcpy(static_cast<std::byte*>(data) + offset, channel.ring + place, size);
  });
}

uint64_t state_of(uint64_t number, Offer::State state) {
  return number * Offer::kStates + state;
}

/// Part of a letter, out of another process's memory. Errors: not allowed, or that one is gone.
bool copy_part(pid_t pid, uint64_t from, std::byte* to, int64_t bytes) {
  while (bytes > 0) {
    const auto size = static_cast<size_t>(std::min(bytes, kMostAtOnce));
    const iovec here{to, size};
    const iovec there{reinterpret_cast<void*>(from), size};
    const ssize_t done = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (done <= 0) return false;
    from += static_cast<uint64_t>(done);
    to += done;
    bytes -= done;
  }
  return true;
}

bool copy_letter(const Offer& offer, std::byte* to, int64_t bytes) {
  const auto pid = static_cast<pid_t>(offer.pid);
  if (bytes < kHalvedBytes) return copy_part(pid, offer.address, to, bytes);
  const int64_t half = bytes / 2;
  // The sender sleeps meanwhile, so its core is free.
  bool second = false;
  std::thread helper = start_quiet_thread([&] {
    second = copy_part(pid, offer.address + static_cast<uint64_t>(half), to + half, bytes - half);
  });
  const bool first = copy_part(pid, offer.address, to, half);
  helper.join();
  return first && second;
}

}  // namespace

Mailbox::Mailbox(const GroupSpec& spec, Control control, Meeting& meeting, SharedMemoryList& memory)
    : spec_(spec),
      control_(control),
      meeting_(meeting),
      memory_(memory),
      pid_space_(pid_space()),
      sent_(static_cast<size_t>(spec.size)) {}

bool Mailbox::fits(const Channel& channel, int64_t bytes) {
  return bytes <=
         kChannelBytes - static_cast<int64_t>(channel.written.load() - channel.read.load());
}

/// All at once: whoever sees the head has the bytes.
void Mailbox::put(Channel& channel, const Envelope& letter, uint64_t offer, const void* data,
                  int64_t bytes) {
  const uint64_t written = channel.written.load();
  const Head head{letter, offer};
  into_ring(channel, written, &head, sizeof head);
  if (bytes > 0) into_ring(channel, written + sizeof head, data, bytes);
  channel.written.store(written + sizeof head + static_cast<uint64_t>(bytes));
  channel.changed.signal();
}

bool Mailbox::try_send(const void* data, const Envelope& letter, int destination) {
  auto& channel = control_.channel(spec_.rank, destination);
  const int64_t bytes = letter.bytes();
  if (bytes > kOfferBytes || !fits(channel, int64_t{sizeof(Head)} + bytes)) return false;
  put(channel, letter, 0, data, bytes);
  return true;
}

bool Mailbox::send(const void* data, const Envelope& letter, int destination,
                   const Waiting& waiting) {
  auto& channel = control_.channel(spec_.rank, destination);
  const Transfer transfer{channel, destination, "send to", waiting};
  const int64_t bytes = letter.bytes();
  const int64_t at_once = bytes > kOfferBytes ? 0 : bytes;
  const int64_t room = int64_t{sizeof(Head)} + at_once;
  if (!await(transfer, [&] { return fits(channel, room); })) return false;
  if (bytes > kOfferBytes) {
    const auto own = memory_.find_any_thread(data, bytes);
    if (own.memory || !sent_[static_cast<size_t>(destination)].refused)
      return send_offer(transfer, data, letter, own.place);
  }
  put(channel, letter, 0, data, at_once);
  if (at_once < bytes) write(transfer, data, bytes);
  return true;
}

bool Mailbox::send_offer(const Transfer& transfer, const void* data, const Envelope& letter,
                         const Place& place) {
  Channel& channel = transfer.channel;
  Offer& offer = channel.offer;
  auto& sent = sent_[static_cast<size_t>(transfer.peer)];
  const uint64_t number = ++sent.offers;
  const auto is = [&](Offer::State state) { return offer.state.load() == state_of(number, state); };
  offer.pid = ::getpid();
  offer.pid_space = pid_space_;
  offer.address = reinterpret_cast<uint64_t>(data);
  offer.segment = place.segment;
  offer.offset = place.offset;
  offer.state.store(state_of(number, Offer::kOffered));
  put(channel, letter, number, nullptr, 0);
  try {
    if (!await(transfer, [&] { return !is(Offer::kOffered); })) {
      uint64_t offered = state_of(number, Offer::kOffered);
      if (offer.state.compare_exchange_strong(offered, state_of(number, Offer::kWithdrawn)))
        return false;
    }
    require(transfer, [&] { return !is(Offer::kOffered) && !is(Offer::kClaimed); });
  } catch (const Error&) {
    // The caller may use the memory for something else.
    offer.state.store(state_of(number, Offer::kWithdrawn));
    throw;
  }
  if (is(Offer::kTaken)) return true;
  sent.refused = true;
  write(transfer, data, letter.bytes());
  return true;
}

bool Mailbox::receive(int source, LetterSink& sink, const Waiting& waiting) {
  sink.look();
  auto& channel = control_.channel(source, spec_.rank);
  const Transfer transfer{channel, source, "recv from", waiting};
  if (!await(transfer, [&] { return channel.written.load() != channel.read.load(); })) return false;
  Head head;
  read(transfer, &head, sizeof head);
  if (head.offer != 0) return take_offer(transfer, head, sink);
  const auto place = sink.begin(head.envelope);
  read({channel, source, "recv from", {place.deadline, waiting.spin}}, place.data,
       head.envelope.bytes());
  sink.end();
  return true;
}

bool Mailbox::copy_offered(const Transfer& transfer, std::byte* to, int64_t bytes) {
  const Offer& offer = transfer.channel.offer;
  if (offer.segment != 0) {
    const auto seen = memory_.see(transfer.peer, {offer.segment, offer.offset}, bytes);
    if (seen.data != nullptr) {
      std::memcpy(to, seen.data, static_cast<size_t>(bytes));
      travelled.mapped.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
  }
  // Elsewhere that pid is another process's.
  const bool named = pid_space_ != 0 && offer.pid_space == pid_space_;
  const bool copied = named && copy_letter(offer, to, bytes);
  (copied ? travelled.read : travelled.refused).fetch_add(1, std::memory_order_relaxed);
  return copied;
}

/// True also where the sender has taken the letter back: something was read.
bool Mailbox::take_offer(const Transfer& transfer, const Head& head, LetterSink& sink) {
  Offer& offer = transfer.channel.offer;
  const auto change = [&](Offer::State from, Offer::State to) {
    uint64_t state = state_of(head.offer, from);
    const bool changed = offer.state.compare_exchange_strong(state, state_of(head.offer, to));
    if (changed) transfer.channel.changed.signal();
    return changed;
  };
  if (!change(Offer::kOffered, Offer::kClaimed)) return true;
  const auto place = sink.begin(head.envelope);
  const Waiting waiting{place.deadline, transfer.waiting.spin};
  const Transfer rest{transfer.channel, transfer.peer, transfer.call, waiting};
  const bool copied = copy_offered(rest, place.data, head.envelope.bytes());
  if (!change(Offer::kClaimed, copied ? Offer::kTaken : Offer::kRefused))
    require(rest, [] { return false; });  // the sender has failed, and so does the group
  if (!copied) read(rest, place.data, head.envelope.bytes());
  sink.end();
  return true;
}

template <class Ready>
bool Mailbox::await(const Transfer& transfer, const Ready& ready) {
  return meeting_.wait(
      transfer.channel.changed, ready, [&] { return std::vector<int>{transfer.peer}; },
      [&] { return Doing{fmt::format("{} {}", transfer.call, spec_.rank_name(transfer.peer))}; },
      transfer.waiting);
}

template <class Ready>
void Mailbox::require(const Transfer& transfer, const Ready& ready) {
  if (await(transfer, ready)) return;
  meeting_.time_out({transfer.peer},
                    {fmt::format("{} {}", transfer.call, spec_.rank_name(transfer.peer))});
}

void Mailbox::write(const Transfer& transfer, const void* data, int64_t bytes) {
  Channel& channel = transfer.channel;
  const auto* from = static_cast<const std::byte*>(data);
  uint64_t written = channel.written.load();
  while (bytes > 0) {
    const auto room = [&] {
      return kChannelBytes - static_cast<int64_t>(written - channel.read.load());
    };
    if (room() == 0) require(transfer, [&] { return room() > 0; });
    const int64_t now = std::min(bytes, room());
    into_ring(channel, written, from, now);
    from += now;
    bytes -= now;
    written += static_cast<uint64_t>(now);
    channel.written.store(written);
    channel.changed.signal();
  }
}

void Mailbox::read(const Transfer& transfer, void* data, int64_t bytes) {
  Channel& channel = transfer.channel;
  auto* to = static_cast<std::byte*>(data);
  uint64_t read = channel.read.load();
  while (bytes > 0) {
    const auto there = [&] { return static_cast<int64_t>(channel.written.load() - read); };
    if (there() == 0) require(transfer, [&] { return there() > 0; });
    const int64_t now = std::min(bytes, there());
    out_of_ring(channel, read, to, now);
    to += now;
    bytes -= now;
    read += static_cast<uint64_t>(now);
    channel.read.store(read);
    channel.changed.signal();
  }
}

}  // namespace lockstep::shm
