#include "lockstep/comm/native/shm/barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/literals.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/native/shm/life.h"

namespace lockstep::shm {
namespace {

/// Number of cores on which the ranks of this group may run, all together.
int cores_of(const Control& control, int num_ranks) {
  CpuSet all{};
  for (int rank = 0; rank < num_ranks; ++rank) all.add(control.slot(rank).cpus);
  return all.count();
}

}  // namespace

Barrier::Barrier(const GroupSpec& spec, Control control)
    : spec_(spec), control_(control), enough_cores_(cores_of(control, spec.size) >= spec.size) {}

const std::byte* Barrier::inline_data(int rank, int64_t bytes) const {
  const auto& slot = control_.slot(rank);
  const auto half = sequence_ & 1;
  return bytes <= kTinyBytes ? slot.posts[half].tiny : slot.inline_data[half];
}

void Barrier::enter(OpHeader header, const SharedOffset& shared, const void* data,
                    int64_t inline_bytes, const Waiting& waiting) {
  ++sequence_;
  header.sequence = told_as_ == 0 ? sequence_ : told_as_;
  header_ = header;
  compared_ = 0;
  throw_group_error();
  reach(FaultPoint::kArriving);
  auto& slot = control_.slot(spec_.rank);
  auto& own = slot.posts[sequence_ & 1];
  own.header = header;
  own.segment = shared.segment;
  own.offset = shared.offset;
  if (inline_bytes > 0) {
    auto* const to = inline_bytes <= kTinyBytes ? own.tiny : slot.inline_data[sequence_ & 1];
    std::memcpy(to, data, static_cast<size_t>(inline_bytes));
  }
  own.sequence.store(sequence_);
  reach(FaultPoint::kEntered);
  // A rank that finds all others present came last, and wakes those that sleep.
  if (all_posted()) {
    control_.head().event.signal();
    return;
  }
  await_all([this] { return all_posted(); }, [this] { return not_posted(); }, waiting);
}

void Barrier::sync(const Waiting& waiting) {
  reach(FaultPoint::kBarrier);
  const uint64_t count = ++rounds_;
  control_.slot(spec_.rank).barriers.store(count);
  if (all_met(count)) {
    control_.head().event.signal();
    return;
  }
  await_all([this, count] { return all_met(count); }, [this, count] { return not_met(count); },
            waiting);
}

void Barrier::finish() {
  reach(FaultPoint::kFinished);
  control_.slot(spec_.rank)
      .finished.store(header_.sequence << 8 | static_cast<uint64_t>(header_.kind),
                      std::memory_order_relaxed);
}

bool Barrier::all_posted() {
  for (; compared_ < spec_.size; ++compared_) {
    if (control_.slot(compared_).posts[sequence_ & 1].sequence.load() != sequence_) break;
    compare(compared_);
  }
  return compared_ == spec_.size;
}

void Barrier::compare(int rank) {
  const auto& theirs = post(rank).header;
  if (theirs == header_) return;
  // Described from the lower rank's side, so that the text is the same on either rank.
  const bool lower = rank < spec_.rank;
  const int first = lower ? rank : spec_.rank;
  const int second = lower ? spec_.rank : rank;
  const auto text = mismatch(post(first).header, spec_.rank_name(first), post(second).header,
                             spec_.rank_name(second));
  const Error error(ErrorCode::kMismatch, *text);
  fail(error);
  throw_group_error();
  throw error;  // another rank died while it wrote the group error; this one is as valid
}

bool Barrier::all_met(uint64_t count) const {
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (control_.slot(rank).barriers.load() < count) return false;
  }
  return true;
}

std::vector<int> Barrier::not_posted() const {
  std::vector<int> missing;
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (post(rank).sequence.load() != sequence_) missing.push_back(rank);
  }
  return missing;
}

std::vector<int> Barrier::not_met(uint64_t count) const {
  std::vector<int> missing;
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (control_.slot(rank).barriers.load() < count) missing.push_back(rank);
  }
  return missing;
}

std::string Barrier::whereabouts(const std::vector<int>& ranks, uint64_t sequence) const {
  std::string text;
  for (const int rank : ranks) {
    const uint64_t last = control_.slot(rank).finished.load(std::memory_order_relaxed);
    OpHeader done;
    done.sequence = last >> 8;
    done.kind = static_cast<OpKind>(last & 0xff);
    const bool inside = control_.slot(rank).posts[sequence & 1].sequence.load() == sequence;
    text += fmt::format(
        "{}{} ({}last finished {})", text.empty() ? "" : ", ", spec_.rank_name(rank),
        sequence == 0 ? ""
        : inside      ? "in it, "
                      : "not in it yet, ",
        done.sequence == 0 ? std::string("nothing")
                           : fmt::format("{} #{}", to_string(done.kind), done.sequence));
  }
  return text;
}

void Barrier::fail(const Error& error) {
  auto& group_error = control_.head().group_error;
  uint32_t none = GroupError::kNone;
  if (group_error.state.compare_exchange_strong(none, GroupError::kWriting)) {
    group_error.code = static_cast<int32_t>(error.code());
    std::strncpy(group_error.text, error.what(), sizeof group_error.text - 1);
    group_error.state.store(GroupError::kReady);
    control_.head().event.signal();
    return;
  }
  // Another rank was first: its text is the error of this rank too. Writing takes microseconds;
  // the limit is for a writer that is killed or stopped meanwhile.
  const auto bound = Deadline::after(100ms);
  while (group_error.state.load(std::memory_order_acquire) != GroupError::kReady &&
         !bound.passed()) {
    sched_yield();
  }
}

void Barrier::throw_group_error() const {
  const auto& group_error = control_.head().group_error;
  if (group_error.state.load(std::memory_order_acquire) != GroupError::kReady) return;
  throw Error(static_cast<ErrorCode>(group_error.code), group_error.text);
}

bool Barrier::anyone_gone(const std::vector<int>& ranks) const {
  return std::any_of(ranks.begin(), ranks.end(), [this](int rank) {
    return rank != spec_.rank && look_at(control_.slot(rank)) != Life::kAlive;
  });
}

void Barrier::check(const std::vector<int>& among, const WaitReason& reason) {
  throw_group_error();
  for (const int rank : among) {
    const Life life = rank == spec_.rank ? Life::kAlive : look_at(control_.slot(rank));
    if (life == Life::kAlive) continue;
    const Error error(
        ErrorCode::kPeerLost,
        fmt::format(
            "{}: {} {}", reason.text(), whereabouts({rank}, reason.sequence),
            life == Life::kDead ? kDied : "ended its process group while others still used it"));
    fail(error);
    throw_group_error();
    throw error;  // it died while it wrote the group error; this one is as valid
  }
}

void Barrier::time_out(const std::vector<int>& missing, const WaitReason& reason) {
  if (reason.sequence != 0) awaited_ = missing;
  const Error error(ErrorCode::kTimeout,
                    fmt::format("{}: timeout after {} s waiting for {}", reason.text(),
                                std::chrono::duration<double>(spec_.timeout).count(),
                                whereabouts(missing, reason.sequence)));
  fail(error);
  throw_group_error();
  throw error;  // another rank died while it wrote the group error; this one is as valid
}

}  // namespace lockstep::shm
