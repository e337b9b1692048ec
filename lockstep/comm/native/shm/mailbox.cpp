#include "lockstep/comm/native/shm/mailbox.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/namespaces.h"
#include "lockstep/comm/native/shm/life.h"
#include "lockstep/comm/native/shm/stream_copy.h"

namespace lockstep::shm {
namespace {

/// Larger messages are offered, and copied while they are sent.
constexpr int64_t kOfferBytes = kChannelBytes / 2;
/// Larger messages do not stay in the cache of the core that writes them.
constexpr int64_t kCachedBytes = 32 << 10;

/// Copies between `data` and the ring at stream position `at`, around its end.
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

void note(std::atomic<int>& travelled_so) {
  travelled_so.fetch_add(1, std::memory_order_relaxed);
}

uint64_t state_of(uint64_t number, Offer::State state) {
  return number * Offer::kStates + state;
}

}  // namespace

Mailbox::Mailbox(const GroupSpec& spec, Control control, Barrier& barrier, SharedMemoryList& memory)
    : spec_(spec),
      control_(control),
      barrier_(barrier),
      memory_(memory),
      pid_space_(pid_space()),
      offers_(static_cast<size_t>(spec.size)),
      unreadable_(static_cast<size_t>(spec.size)) {}

bool Mailbox::fits(const Channel& channel, int64_t bytes) {
  return bytes <=
         kChannelBytes - static_cast<int64_t>(channel.written.load() - channel.read.load());
}

/// Published at once: a reader that sees the head has the bytes.
void Mailbox::put(Channel& channel, const MessageHeader& message, uint64_t offer, const void* data,
                  int64_t bytes) {
  const uint64_t written = channel.written.load();
  const Head head{message, offer};
  into_ring(channel, written, &head, sizeof head);
  if (bytes > 0) into_ring(channel, written + sizeof head, data, bytes);
  channel.written.store(written + sizeof head + static_cast<uint64_t>(bytes));
  channel.changed.signal();
}

bool Mailbox::try_send(const void* data, const MessageHeader& message, int destination) {
  auto& channel = control_.channel(spec_.rank, destination);
  const int64_t bytes = message.bytes();
  if (bytes > kOfferBytes || !fits(channel, int64_t{sizeof(Head)} + bytes)) return false;
  put(channel, message, 0, data, bytes);
  return true;
}

bool Mailbox::send(const void* data, const MessageHeader& message, int destination,
                   const Waiting& waiting) {
  auto& channel = control_.channel(spec_.rank, destination);
  const Transfer transfer{channel, destination, "send to", waiting};
  const int64_t bytes = message.bytes();
  const bool is_large = bytes > kOfferBytes;
  const int64_t room = int64_t{sizeof(Head)} + (is_large ? int64_t{sizeof(Origin)} : bytes);
  if (!await(transfer, [&] { return fits(channel, room); })) return false;
  if (is_large) {
    const auto own = memory_.find_any_thread(data, bytes);
    return send_offer(transfer, data, message, own.shared);
  }
  put(channel, message, 0, data, bytes);
  return true;
}

bool Mailbox::send_offer(const Transfer& transfer, const void* data, const MessageHeader& message,
                         const SharedOffset& shared) {
  Channel& channel = transfer.channel;
  const uint64_t number = ++offers_[static_cast<size_t>(transfer.peer)];
  auto& state = channel.offer.state;
  const uint64_t offered = state_of(number, Offer::kOffered);
  const Origin origin{::getpid(), pid_space_, reinterpret_cast<uint64_t>(data), shared};
  LaneSender lane(channel.lane, channel.slots, data, message.bytes());
  lane.open();
  state.store(offered);
  put(channel, message, number, &origin, sizeof origin);
  try {
    // Receivers wait for most messages: the first chunks are ready when the receiver has woken up.
    while (shared.segment == 0 && state.load() == offered && fill(channel, lane)) {
    }
    if (!await(transfer, [&] { return state.load() != offered; })) {
      uint64_t seen = offered;
      if (state.compare_exchange_strong(seen, state_of(number, Offer::kWithdrawn))) return false;
    }
    // The receiver has begun, perhaps at the last moment: the copy has a timeout of its own.
    const Waiting begun{Deadline::after(spec_.timeout), true};
    const Transfer rest{channel, transfer.peer, transfer.call, begun};
    fill_lane(rest, lane, number);
    const Transfer end{channel, transfer.peer, transfer.call,
                       Waiting{begun.deadline, transfer.waiting.spin}};
    require(end, [&] { return state.load() == state_of(number, Offer::kTaken); });
  } catch (...) {
    // The caller may use the memory for something else.
    state.store(state_of(number, Offer::kWithdrawn));
    throw;
  }
  return true;
}

bool Mailbox::fill(Channel& channel, LaneSender& lane) const {
  if (!lane.fill()) return false;
  channel.changed.signal();
  reach(FaultPoint::kSending);
  return true;
}

/// While the receiver copies too, there is room after a moment.
void Mailbox::fill_lane(const Transfer& transfer, LaneSender& lane, uint64_t number) {
  Channel& channel = transfer.channel;
  const auto is_claimed = [&] {
    return channel.offer.state.load() == state_of(number, Offer::kClaimed);
  };
  while (is_claimed()) {
    if (!fill(channel, lane)) require(transfer, [&] { return !is_claimed() || lane.can_fill(); });
  }
}

bool Mailbox::receive(int source, MessageSink& sink, const Waiting& waiting) {
  sink.look();
  auto& channel = control_.channel(source, spec_.rank);
  const Transfer transfer{channel, source, "recv from", waiting};
  if (!await(transfer, [&] { return channel.written.load() != channel.read.load(); })) return false;
  Head head;
  read(transfer, &head, sizeof head);
  if (head.offer != 0) return take_offer(transfer, head, sink);
  const auto destination = sink.begin(head.header);
  read({channel, source, "recv from", {destination.deadline, waiting.spin}}, destination.data,
       head.header.bytes());
  sink.end();
  return true;
}

/// True also if the sender has withdrawn the message: something was read.
bool Mailbox::take_offer(const Transfer& transfer, const Head& head, MessageSink& sink) {
  Origin origin;
  read(transfer, &origin, sizeof origin);
  const int64_t bytes = head.header.bytes();
  const auto mapped = origin.shared.segment == 0 ? SharedMemoryList::Seen{}
                                                 : memory_.see(transfer.peer, origin.shared, bytes);
  const auto change = [&](Offer::State from, Offer::State to) {
    uint64_t state = state_of(head.offer, from);
    const bool changed =
        transfer.channel.offer.state.compare_exchange_strong(state, state_of(head.offer, to));
    if (changed) transfer.channel.changed.signal();
    return changed;
  };
  const auto claimed = mapped.data != nullptr ? Offer::kMapped : Offer::kClaimed;
  if (!change(Offer::kOffered, claimed)) return true;
  const auto destination = sink.begin(head.header);
  // As at the sender, the copy has a timeout of its own.
  const Waiting waiting{Deadline::after(spec_.timeout), transfer.waiting.spin};
  const Transfer rest{transfer.channel, transfer.peer, transfer.call, waiting};
  if (mapped.data != nullptr) {
    std::memcpy(destination.data, mapped.data, static_cast<size_t>(bytes));
    note(travelled.mapped);
  } else {
    copy_together(rest, origin, destination.data, bytes);
  }
  if (!change(claimed, Offer::kTaken))
    require(rest, [] { return false; });  // the sender has failed, and so does the group
  sink.end();
  return true;
}

void Mailbox::copy_together(const Transfer& transfer, const Origin& origin, std::byte* to,
                            int64_t bytes) {
  Channel& channel = transfer.channel;
  LaneReceiver lane(channel.lane, channel.slots, {static_cast<pid_t>(origin.pid), origin.address},
                    to, bytes);
  auto& unreadable = unreadable_[static_cast<size_t>(transfer.peer)];
  // With another numbering that pid is another process's.
  const bool is_named = pid_space_ != 0 && origin.pid_space == pid_space_;
  const auto may_read = [&] { return is_named && unreadable == 0; };
  bool is_patient = transfer.waiting.spin;
  bool has_read = false;
  LaneStep step;
  while ((step = lane.next(may_read())) != LaneStep::kDone) {
    if (step == LaneStep::kTake) {
      lane.take();
      note(travelled.taken);
      channel.changed.signal();
      reach(FaultPoint::kReceiving);
      is_patient = transfer.waiting.spin;
    } else if (step == LaneStep::kWait) {
      require(transfer, [&] { return lane.arrived(); });
    } else if (is_patient) {
      is_patient = barrier_.spin([&] { return lane.arrived(); });
    } else if (const auto read = lane.read(step); read == LaneReceiver::Read::kDone) {
      has_read = true;
      note(travelled.read);
      reach(FaultPoint::kReceiving);
    } else if (read == LaneReceiver::Read::kRefused) {
      unreadable = 1;
      note(travelled.refused);
      channel.changed.signal();
    }
  }
  // Else that pid may have belonged to another process meanwhile.
  if (has_read && look_at(control_.slot(transfer.peer)) != Life::kAlive)
    barrier_.check({transfer.peer}, reason(transfer));
}

WaitReason Mailbox::reason(const Transfer& transfer) const {
  return {[&] { return fmt::format("{} {}", transfer.call, spec_.rank_name(transfer.peer)); }};
}

template <class Ready>
bool Mailbox::await(const Transfer& transfer, const Ready& ready) {
  return barrier_.wait(
      transfer.channel.changed, ready, [&] { return std::vector<int>{transfer.peer}; },
      [&] { return reason(transfer); }, transfer.waiting);
}

template <class Ready>
void Mailbox::require(const Transfer& transfer, const Ready& ready) {
  if (await(transfer, ready)) return;
  barrier_.time_out({transfer.peer}, reason(transfer));
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
