// The exchange of Links: all connections in turn, waits in between, and the choice of the peers
// reported as late.

#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/native/tcp/link.h"
#include "lockstep/comm/native/tcp/links.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

/// How often a waiting rank calls the alarm.
constexpr auto kAlarmed = std::chrono::milliseconds(100);
/// Up to this number of peers that send no more than kFewBytes, each is read directly, without
/// asking epoll.
constexpr size_t kFewLinks = 4;

}  // namespace

void Links::exchange(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
                     std::chrono::microseconds spin) {
  if (out.empty() && in.empty()) return;
  const OpKind kind = (out.empty() ? in.front().frame : out.front().frame).operation.kind;
  reach(world_rank_, kind, FaultPoint::kExchanging);
  pump(out, in, deadline, spin);
  reach(world_rank_, kind, FaultPoint::kExchanged);
}

void Links::pump(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
                 std::chrono::microseconds spin) {
  const OpHeader now = (out.empty() ? in.front().frame : out.front().frame).operation;
  std::vector<Link*> busy;
  const auto use = [&](int peer) {
    Link* const link = &link_to(peer, now, deadline);
    if (std::find(busy.begin(), busy.end(), link) == busy.end()) busy.push_back(link);
  };
  for (const auto& item : out) use(item.peer);
  for (const auto& item : in) use(item.peer);
  for (const auto& item : out) links_[static_cast<size_t>(item.peer)]->out.push_back(&item);
  for (const auto& item : in) links_[static_cast<size_t>(item.peer)]->in.push_back(&item);
  std::optional<Deadline::Clock::time_point> spin_end;  // since the last transfer
  while (!busy.empty()) {
    bool moved = false;
    for (Link* link : busy) {
      moved |= pump_out(*link);
      moved |= pump_in(*link);
    }
    std::erase_if(busy, [](const Link* link) { return link->idle(); });
    if (moved) spin_end.reset();
    if (moved || busy.empty()) continue;
    if (!spin_end) spin_end = Deadline::Clock::now() + spin;
    if (look(busy, *spin_end, deadline)) {
      spin_end.reset();
    } else {
      sleep(now, deadline);
    }
  }
}

/// Checks repeatedly until `end`. True if there is something to do.
bool Links::look(std::span<Link* const> busy, Deadline::Clock::time_point end, Deadline deadline) {
  const auto needs_epoll = [](const Link* link) { return link->full() || link->brings_much(); };
  const bool ask_each =
      busy.size() <= kFewLinks && std::none_of(busy.begin(), busy.end(), needs_epoll);
  while (Deadline::Clock::now() < end) {
    if (deadline.passed()) throw_timeout();  // also if a peer sends byte by byte forever
    // The peer may be on this machine and need this core: if hosts share one, as in tests.
    sched_yield();
    for (Link* link : ask_each ? busy : std::span<Link* const>{}) {
      if (!link->awaited() || !link->can_read()) continue;
      link->readable = true;
      if (pump_in(*link)) return true;
    }
    if (!ask_each && take_events(0) > 0) return true;
  }
  return false;
}

void Links::sleep(const OpHeader& now, Deadline deadline) {
  if (deadline.passed() || (alarm_ && alarm_())) throw_timeout();
  if (take_events(0) > 0) return;
  check_unasked(now);
  take_events(deadline.at_most(kAlarmed).left_poll_ms());
}

int Links::take_events(int milliseconds) {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds);
  if (count < 0 && errno != EINTR) throw io_error("epoll_wait");
  for (int i = 0; i < count; ++i) {
    const auto* source = static_cast<Link::Source*>(events[static_cast<size_t>(i)].data.ptr);
    Link* const link = source->link;
    const uint32_t what = events[static_cast<size_t>(i)].events;
    // The call that uses a dead connection detects it.
    const bool ended = (what & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    if (source->of == Link::kArrival) {
      claim(*link);
    } else if (source->of == Link::kOut) {
      link->peer_left |= ended;
    } else {
      link->ended |= ended;
      link->readable |= ended || (what & EPOLLIN) != 0;
    }
    link->writable |= source->of != Link::kIn && (ended || (what & EPOLLOUT) != 0);
  }
  return count;
}

std::string Links::names_of(const std::vector<int>& peers) const {
  std::string text;
  for (const int peer : peers) text += (text.empty() ? "" : ", ") + name_(peer);
  return text;
}

void Links::throw_timeout() {
  const auto link_of = [this](int peer) { return links_[static_cast<size_t>(peer)].get(); };
  awaited_ = furthest_back();
  const bool silent = !awaited_.empty();
  if (!silent) awaited_ = deaf();
  std::string call;
  if (!awaited_.empty()) {
    const Link* const first = link_of(awaited_.front());
    const Frame& frame = silent ? first->in.front()->frame : first->out.front()->frame;
    call = describe(frame.operation);
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("{} on {}: {} did not {} in time", call, name_(rank_), names_of(awaited_),
                          silent ? "come" : "take the data"));
}

std::vector<int> Links::furthest_back() const {
  std::vector<int> peers;
  uint32_t least = 0;
  for (const auto& link : links_) {
    if (!link || !link->awaited()) continue;
    const uint32_t part = link->in.front()->frame.part;
    if (peers.empty() || part < least) {
      peers.clear();
      least = part;
    }
    if (part == least) peers.push_back(link->peer);
  }
  return peers;
}

std::vector<int> Links::deaf() const {
  std::vector<int> peers;
  for (const auto& link : links_) {
    if (link && !link->out.empty() && link->out.front()->gate.open()) peers.push_back(link->peer);
  }
  return peers;
}

void Links::throw_lost(const Link& link, const std::string& how) {
  awaited_ = {link.peer};
  const auto* item = !link.in.empty() ? &link.in.front()->frame : &link.out.front()->frame;
  throw Error(ErrorCode::kPeerLost,
              fmt::format("{} on {}: {}: {}{}", describe(item->operation), name_(rank_),
                          name_(link.peer), how, kMostLikelyFailed));
}

}  // namespace lockstep::tcp
