#pragma once
// Memory that a store's server shares with a client of its own host. A short call through it needs
// no system call while both are awake. The connection stays, for all other calls.
//
//   the client                                the server
//   writes its request into its call slot
//   raises its call slot's flag          ──▶  lowers the flags, and copies each request
//   if the server sleeps, wakes it by a
//   message over its connection
//   looks for the reply, then sleeps     ◀──  writes the reply; wakes the client if it sleeps
//
// A call slot holds one request at a time, which has the bytes that it would have on the connection
// (protocol.h). A reply that is long, or comes later, goes over the connection. Each end reads a
// size once, and copies a body before it decodes it. The memory cannot be shrunk, so no access can
// fail.
//
// A client whose process is stopped or killed anywhere in this leaves at most one raised flag, and
// never holds up another client.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/shared_event.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/tcp/spinning.h"

namespace lockstep::inline internal {

/// Not "lockstep...": other memory of this user's processes has such a name, and is handed out to
/// any of them that asks.
inline constexpr char kCallSlotMemfd[] = "store-call-slot";

/// The layout of a call slot; all zero at first. A `count` is that of messages so far, and is
/// written last.
struct CallSlotMemory {
  static constexpr size_t kRoom = 4032;  ///< Bytes of the longest body.
  struct alignas(64) Request {
    std::atomic<uint32_t> count;
    std::atomic<uint32_t> size;  ///< Of the body.
  };
  struct alignas(64) Reply {
    std::atomic<uint32_t> count;
    std::atomic<uint32_t> size;  ///< Of the body; 0: the reply comes over the connection.
    SharedEvent came;
  };
  Request request;
  Reply reply;
  char request_body[kRoom];
  char reply_body[kRoom];
};
static_assert(sizeof(CallSlotMemory) == 8192);
static_assert(offsetof(CallSlotMemory, reply) == 64);
static_assert(offsetof(CallSlotMemory, request_body) == 128);
static_assert(offsetof(CallSlotMemory, reply_body) == 4160);

/// The layout of the memory that all clients of a server share.
struct FlagMemory {
  static constexpr size_t kSlots = 1024;
  alignas(64) std::atomic<uint32_t> server_sleeps;
  alignas(64) std::atomic<uint64_t> raised[kSlots / 64];  ///< A bit for each call slot.
};
static_assert(sizeof(FlagMemory) == 192 && offsetof(FlagMemory, raised) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// A mapping of shared memory that holds one T; unmapped by the destructor.
template <class T>
class SharedObject {
 public:
  SharedObject() = default;
  /// Empty if `memory` is not of make_sealed_memory() and large enough, or cannot be mapped.
  explicit SharedObject(int memory);
  SharedObject(SharedObject&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  SharedObject& operator=(SharedObject&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~SharedObject();

  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};
extern template class SharedObject<CallSlotMemory>;
extern template class SharedObject<FlagMemory>;

/// A call slot on its client's side. Not thread-safe, but await() may run beside all calls.
class ClientCallSlot {
 public:
  /// From the descriptors that the server passed, in the order of CallSlots::Opened. Null if
  /// they are not usable.
  static std::unique_ptr<ClientCallSlot> from(std::vector<UniqueFd> passed, int64_t index);

  /// Puts a request; false if it is too long. The one before must have its answer. If
  /// server_sleeps() then, the client has to wake the server over the connection.
  bool put(std::string_view body);
  bool server_sleeps() const { return flags_->server_sleeps.load() != 0; }
  /// The number of requests so far.
  uint32_t count() const { return count_; }
  bool has_answer() const { return has_answered(count_); }
  /// Waits until so many requests have their answers, or `slice` has passed. Another thread may
  /// take the answer, and put the next request, meanwhile.
  void await(uint32_t count, Spinning& spinning, std::chrono::milliseconds slice) const;
  /// The body of the reply to the last request; nothing: it comes over the connection. Call only if
  /// has_answer().
  std::optional<std::string> take_reply() const;

 private:
  ClientCallSlot() = default;
  bool has_answered(uint32_t count) const {  // counts wrap around
    return static_cast<int32_t>(memory_->reply.count.load() - count) >= 0;
  }

  SharedObject<CallSlotMemory> memory_;
  SharedObject<FlagMemory> flags_;
  uint64_t flag_ = 0;  ///< This call slot's bit, in
  size_t word_ = 0;    ///< this word.
  uint32_t count_ = 0;
};

/// A call slot on the server's side.
class ServerCallSlot {
 public:
  ServerCallSlot(SharedObject<CallSlotMemory> memory, size_t index)
      : memory_(std::move(memory)), index_(index) {}

  /// A copy of the request that has no answer yet, once. Errors: kCorrupt (its size).
  std::optional<std::string> take_request();
  /// Answers it; false, and it is still unanswered, if the body is too long.
  bool answer(std::string_view body);
  /// Its answer comes over the connection.
  void answer_over_connection() { finish(0); }

  size_t index() const { return index_; }

 private:
  void finish(size_t size);

  SharedObject<CallSlotMemory> memory_;
  size_t index_;
  uint32_t taken_ = 0;  ///< Requests so far.
};

/// All call slots of a server.
class CallSlots {
 public:
  struct Opened {
    std::unique_ptr<ServerCallSlot> slot;
    UniqueFd memory;                 ///< Of the call slot; only to be passed.
    std::array<int, 2> descriptors;  ///< To pass: the call slot, the flags.
  };
  /// Opens a call slot for a client (not 0). Nothing: there is no room, or no memory.
  std::optional<Opened> open(uint64_t client);
  void close(size_t index) { clients_.at(index) = 0; }

  /// Whether a flag is raised. Cost: looks at two cache lines.
  bool any_raised() const;
  /// Looks a little longer, as a client that has just got its reply puts its next request soon.
  bool any_raised_soon() const;
  /// Clients whose flag was raised; lowers the flags.
  const std::vector<uint64_t>& take_raised();

  /// From here until awake() clients wake the server. True: a flag is raised already, so do not
  /// sleep.
  bool about_to_sleep();
  void awake();

 private:
  bool prepare();

  UniqueFd flag_memory_;
  SharedObject<FlagMemory> flags_;
  std::vector<uint64_t> clients_;  ///< By index; 0: none.
  std::vector<uint64_t> raised_;   ///< take_raised()'s, whose memory is kept.
};

}  // namespace lockstep::inline internal
