#include "lockstep/comm/checked_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/comm/rank_answers.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {
namespace {

/// The result of allocate() if the engine shares no memory: memory of this rank alone, 64-byte
/// aligned, zeroed.
class PrivateBuffer : public SharedBuffer {
 public:
  explicit PrivateBuffer(int64_t bytes) : bytes_(bytes) {
    constexpr size_t kAlign = 64;
    const auto size = (static_cast<size_t>(bytes) / kAlign + 1) * kAlign;
    data_ = std::aligned_alloc(kAlign, size);
    if (data_ == nullptr) throw Error(ErrorCode::kUnavailable, "allocate: no memory");
    std::memset(data_, 0, size);
  }
  ~PrivateBuffer() override { std::free(data_); }
  PrivateBuffer(const PrivateBuffer&) = delete;
  PrivateBuffer& operator=(const PrivateBuffer&) = delete;
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
  void* data_;
};

/// Halved, so that it and its negative fit in int64.
int64_t digest_of(const OpHeader& header) {
  return static_cast<int64_t>(fnv1a(std::as_bytes(std::span(&header, 1))) >> 1);
}

/// 40 bits, so that the sum over all pairs of 2,896 ranks still fits in int64.
int64_t mark_of(int from, int to, int64_t count) {
  const std::array<int64_t, 3> words = {from, to, count};
  return static_cast<int64_t>(fnv1a(std::as_bytes(std::span(words))) >> 24);
}

std::string call_key(const GroupSpec& spec, const std::string& rank) {
  return fmt::format("{}/doing/{}", spec.name, rank);
}

std::string trouble_key(const GroupSpec& spec) {
  return spec.name + "/trouble";
}

}  // namespace

void CheckedGroup::barrier(const Waiting& waiting) {
  collective({.kind = OpKind::kBarrier}, waiting, [] {});
}

std::shared_ptr<SharedBuffer> CheckedGroup::allocate(int64_t bytes, const Waiting& waiting) {
  std::shared_ptr<SharedBuffer> buffer;
  collective({.count = bytes, .kind = OpKind::kAllocate}, waiting,
             [&] { buffer = std::make_shared<PrivateBuffer>(bytes); });
  return buffer;
}

void CheckedGroup::give_up(const Error& error, Deadline deadline) noexcept {
  try_to_agree(spec_, error, deadline);
}

bool CheckedGroup::send(const void* data, const MessageHeader& message, int destination,
                        const Waiting& waiting) {
  const WaitReason reason{[&] {
    return fmt::format("send of {}, to {} on {}", describe(message), spec_.rank_name(destination),
                       spec_.rank_name(spec_.rank));
  }};
  agreed(false, [&] {
    with_buffer(std::vector{message}, [&](const MessageHeader* from) {
      bytes_to(destination, from, sizeof *from, reason, waiting);
    });
    if (message.bytes() > 0) bytes_to(destination, data, message.bytes(), reason, waiting);
  });
  return true;
}

bool CheckedGroup::receive(int source, MessageSink& sink, const Waiting& waiting) {
  const auto wanted = sink.wanted();
  const WaitReason reason{[&] {
    return fmt::format("recv of {}, from {} on {}", wanted, spec_.rank_name(source),
                       spec_.rank_name(spec_.rank));
  }};
  agreed(false, [&] {
    sink.look();
    const auto header = with_buffer(std::vector<MessageHeader>(1), [&](MessageHeader* to) {
      bytes_from(source, to, sizeof *to, reason, waiting);
    })[0];
    const auto destination = sink.begin(header);
    const Waiting rest{destination.deadline, waiting.spin, waiting.site};
    if (header.bytes() > 0) bytes_from(source, destination.data, header.bytes(), reason, rest);
    sink.end();
  });
  return true;
}

WaitReason CheckedGroup::this_collective() const {
  const auto text = [this] {
    return fmt::format("{} on {}", describe(header_), spec_.rank_name(spec_.rank));
  };
  return {text, header_.sequence};
}

/// All ranks come to the same result: the greatest digest and the least must equal their own.
void CheckedGroup::require_equal_headers(const Waiting& waiting) {
  const int64_t own = digest_of(header_);
  const auto ends = with_buffer(std::vector{own, -own},
                                [&](int64_t* values) { fold(values, 2, ReduceOp::kMax, waiting); });
  if (ends[0] == own && ends[1] == -own) return;
  throw Error(ErrorCode::kMismatch,
              fmt::format("{}: another rank called something else", this_collective().text()));
}

/// Equal counts of sender and receiver cancel out in the sum.
void CheckedGroup::require_equal_counts(const Exchange& exchange, const Waiting& waiting) {
  int64_t balance = 0;
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto at = static_cast<size_t>(rank);
    balance += mark_of(spec_.rank, rank, exchange.sends[at].count);
    balance -= mark_of(rank, spec_.rank, exchange.receives[at].count);
  }
  const auto sum = with_buffer(std::vector{balance},
                               [&](int64_t* values) { fold(values, 1, ReduceOp::kSum, waiting); });
  if (sum[0] != 0) throw different_counts(exchange, waiting);
}

/// All ranks learn all counts and name the same pair.
Error CheckedGroup::different_counts(const Exchange& exchange, const Waiting& waiting) {
  const auto size = static_cast<size_t>(spec_.size);
  std::vector<int64_t> own(2 * size * size, 0);  // sent, expected: by sender, then receiver
  for (size_t rank = 0; rank < size; ++rank) {
    const auto self = static_cast<size_t>(spec_.rank);
    own[self * size + rank] = exchange.sends[rank].count;
    own[(size + rank) * size + self] = exchange.receives[rank].count;
  }
  const auto all = with_buffer(std::move(own), [&](int64_t* values) {
    fold(values, static_cast<int>(2 * size * size), ReduceOp::kMax, waiting);
  });
  const auto expected = all.begin() + static_cast<ptrdiff_t>(size * size);
  const auto [sent, wanted] = std::mismatch(all.begin(), expected, expected);
  const auto at = static_cast<size_t>(sent - all.begin());
  return Error(ErrorCode::kMismatch,
               uneven(header_, spec_.rank_name(static_cast<int>(at / size)), *sent,
                      spec_.rank_name(static_cast<int>(at % size)), *wanted));
}

void CheckedGroup::look_for_trouble(const WaitReason& reason) const {
  if (spec_.size == 1) return;  // which may have no store
  std::vector<std::string> keys = {group_error_key(spec_)};
  if (reason.sequence != 0) keys.push_back(trouble_key(spec_));
  for (const auto& key : keys) {
    if (!spec_.store->check(std::span(&key, 1), Deadline::after(kStoreLimit))) continue;
    throw decode_group_error(spec_.store->get(key, Deadline::after(kStoreLimit)));
  }
}

void CheckedGroup::await_group_error() const {
  const auto key = group_error_key(spec_);
  const auto limit = Deadline::after(kLongestGrace + 1s);
  if (!exist_within(*spec_.store, std::span(&key, 1), limit)) return;
  throw decode_group_error(spec_.store->get(key, Deadline::after(kStoreLimit)));
}

void CheckedGroup::throw_agreed(const Error& error, bool is_collective) {
  if (is_harmless(error.code())) throw Error(error);
  const Error group_error = agreed_error(error, is_collective);
  // Only now: peers see it as connections that close.
  stop(is_collective);
  throw Error(group_error);
}

Error CheckedGroup::agreed_error(const Error& error, bool is_collective) const {
  if (spec_.size == 1) return error;
  try {
    return agree_on_group_error(spec_, is_collective ? explain(error) : error,
                                Deadline::after(kStoreLimit));
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the store lacks the error of group '{}': {}",
                          spec_.rank_name(spec_.rank), spec_.name, store_error.what()));
    return error;
  }
}

/// The engine reports neither late ranks nor differing calls. Each rank's call, written into the
/// store, shows both.
Error CheckedGroup::explain(const Error& error) const {
  if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kTimeout &&
      error.code() != ErrorCode::kMismatch) {
    return error;
  }
  Error first = first_trouble(error);
  const auto own = describe(header_);
  const auto calls = gather_calls();
  std::vector<int> missing;
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto& theirs = calls[static_cast<size_t>(rank)];
    if (theirs.empty()) missing.push_back(rank);
    if (theirs.empty() || theirs == own) continue;
    const bool before = spec_.rank < rank;
    return Error(ErrorCode::kMismatch,
                 fmt::format("{} called {}, {} called {}",
                             spec_.rank_name(before ? spec_.rank : rank), before ? own : theirs,
                             spec_.rank_name(before ? rank : spec_.rank), before ? theirs : own));
  }
  if (missing.empty() || first.code() == ErrorCode::kMismatch) return first;
  const auto names = spec_.rank_names(missing);
  if (first.code() == ErrorCode::kPeerLost) {
    return Error(ErrorCode::kPeerLost,
                 fmt::format("{}: {} went away ({})", own, names, first.what()));
  }
  return Error(ErrorCode::kTimeout,
               fmt::format("{}: timeout after {} s waiting for {}", own,
                           std::chrono::duration<double>(spec_.timeout).count(), names));
}

/// The first of several ranks' errors is the cause.
Error CheckedGroup::first_trouble(const Error& error) const {
  const auto swap = spec_.store->compare_set(
      trouble_key(spec_), std::nullopt, encode_group_error(error), Deadline::after(kStoreLimit));
  return !swap.swapped && swap.value ? decode_group_error(*swap.value) : error;
}

/// By rank; empty for ranks that do not report within a grace period.
std::vector<std::string> CheckedGroup::gather_calls() const {
  Store& store = *spec_.store;
  const auto key_of = [&](int rank) { return call_key(spec_, std::to_string(rank)); };
  store.set(key_of(spec_.rank), describe(header_), Deadline::after(kStoreLimit));
  std::vector<std::string> keys;
  for (int rank = 0; rank < spec_.size; ++rank) keys.push_back(key_of(rank));
  const auto grace =
      std::clamp<std::chrono::milliseconds>(spec_.timeout / 10, 5 * kLookPause, kLongestGrace);
  exist_within(store, keys, Deadline::after(grace));
  const auto answers =
      answers_by_rank(store, call_key(spec_, ""), spec_.size, Deadline::after(kStoreLimit));
  std::vector<std::string> calls;
  for (const auto& answer : answers) calls.push_back(answer.value_or(""));
  return calls;
}

void OrphanedBuffers::keep(std::shared_ptr<void> memory) {
  MutexLock lock(mutex_);
  kept_.push_back(std::move(memory));
}

void OrphanedBuffers::leave_to_process() {
  static auto& of_process = *new OrphanedBuffers;  // never destroyed
  MutexLock lock(mutex_);
  for (auto& memory : kept_) of_process.keep(std::move(memory));
  kept_.clear();
}

}  // namespace lockstep::inline internal
