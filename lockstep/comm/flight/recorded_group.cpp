#include "lockstep/comm/flight/recorded_group.h"

#include <type_traits>
#include <utility>

#include "lockstep/comm/flight/diagnostics_thread.h"
#include "lockstep/comm/flight/hang_watch.h"
#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/flight/operations.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/group_error.h"

namespace lockstep::inline internal {
namespace {

class RecordedGroup : public GroupImpl {
 public:
  RecordedGroup(const GroupSpec& spec, std::unique_ptr<GroupImpl> impl)
      : spec_(spec),
        ring_(FlightRing::of_rank(spec.world_ranks[static_cast<size_t>(spec.rank)], spec.size)),
        // A world of one rank needs no name in a store, but the recorder needs one.
        group_(ring_.add_group(spec.name.empty() ? "alone" : spec.name, spec.rank, spec.size)),
        impl_(std::move(impl)),
        diagnostics_thread_(
            spec, [spec](bool with_stacks) { tell_of_host(spec, with_stacks); },
            [spec](const std::string& token) { write_operations(spec, token); }),
        watch_(HangWatch::of(ring_)) {
    watch_->add(group_, spec);
  }

  ~RecordedGroup() override {
    watch_->remove(group_);
    ring_.end_group(group_);
  }

  std::string device() const override { return impl_->device(); }

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override {
    run({*this, waiting, "all_reduce", count, dtype},
        [&] { impl_->all_reduce(data, count, dtype, op, waiting); });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root,
                 const Waiting& waiting) override {
    run({*this, waiting, "broadcast", count, dtype, root},
        [&] { impl_->broadcast(data, count, dtype, root, waiting); });
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override {
    run({*this, waiting, "all_gather", count, dtype},
        [&] { impl_->all_gather(in, out, count, dtype, waiting); });
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override {
    run({*this, waiting, "reduce_scatter", count, dtype},
        [&] { impl_->reduce_scatter(in, out, count, dtype, op, waiting); });
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override {
    run({*this, waiting, "reduce", count, dtype, root},
        [&] { impl_->reduce(data, count, dtype, op, root, waiting); });
  }
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override {
    run({*this, waiting, to_string(exchange.kind).data(), exchange.even() ? exchange.count : -1,
         exchange.dtype, exchange.root, exchange.bytes()},
        [&] { impl_->exchange(exchange, in, out, waiting); });
  }
  void barrier(const Waiting& waiting) override {
    run({*this, waiting, "barrier", 0, DType::kUint8}, [&] { impl_->barrier(waiting); });
  }
  bool try_send(const void* data, const MessageHeader& message, int destination,
                CallSite site) override {
    if (!impl_->try_send(data, message, destination, site)) return false;
    ring_.leave(ring_.enter(operation("send", message, destination, site)), 0);
    return true;
  }
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting) override {
    bool sent = false;
    run(
        {*this, waiting, "send", message, destination},
        [&](Entry& entry) {
          sent = impl_->send(data, message, destination, waiting);
          if (!sent) entry.fails_alone();
        },
        destination);
    return sent;
  }
  bool receive(int source, MessageSink& sink, const Waiting& waiting) override {
    try {
      return impl_->receive(source, sink, waiting);
    } catch (const Error& error) {
      throw with_last_calls(
          spec_, error, [&](const Error& cause) { return watch_->explain(spec_, cause, source); });
    }
  }
  uint64_t recv_begins(const MessageHeader& wanted, int source, CallSite site) override {
    return ring_.enter(operation("recv", wanted, source, site));
  }
  void recv_awaited(uint64_t number) override { ring_.wait_for(number); }
  void recv_ended(uint64_t number, uint8_t failed) override { ring_.leave(number, failed); }
  std::string why_held_up(int peer) override { return watch_->why_held_up(spec_, peer); }
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    std::shared_ptr<SharedBuffer> buffer;
    run({*this, waiting, "allocate", bytes, DType::kUint8},
        [&] { buffer = impl_->allocate(bytes, waiting); });
    return buffer;
  }
  void give_up(const Error& error, Deadline deadline) noexcept override {
    impl_->give_up(error, deadline);
  }

 private:
  FlightRing::Operation operation(const char* call, const MessageHeader& message, int peer,
                                  CallSite site) const {
    return {call, group_, 0, message.count, message.bytes(), static_cast<uint8_t>(message.dtype),
            peer, site};
  }

  /// Records the beginning of an operation; its destruction, by return or by exception, records the
  /// end.
  class Entry {
   public:
    Entry(RecordedGroup& group, const Waiting& waiting, const char* call, int64_t count,
          DType dtype, int peer = -1)
        : Entry(group, waiting, call, count, dtype, peer, count * size_of(dtype)) {}
    Entry(RecordedGroup& group, const Waiting& waiting, const char* call, int64_t count,
          DType dtype, int peer, int64_t bytes)
        : Entry(group.ring_, {call, group.group_, ++group.sequence_, count, bytes,
                              static_cast<uint8_t>(dtype), peer, waiting.site, waiting.spin,
                              std::chrono::nanoseconds(waiting.began.time_since_epoch()).count()}) {
    }
    Entry(RecordedGroup& group, const Waiting& waiting, const char* call,
          const MessageHeader& message, int peer)
        : Entry(group.ring_, group.operation(call, message, peer, waiting.site)) {}
    ~Entry() {
      const bool failed = failed_alone_ || std::uncaught_exceptions() > exceptions_;
      ring_.leave(number_, failed ? failed_ : 0);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    void group_goes_on() { failed_ = 2; }
    /// Records a failure without an exception.
    void fails_alone() {
      failed_alone_ = true;
      group_goes_on();
    }

   private:
    Entry(FlightRing& ring, const FlightRing::Operation& operation)
        : ring_(ring), number_(ring.enter(operation)) {}

    FlightRing& ring_;
    uint64_t number_;
    uint8_t failed_ = 1;
    bool failed_alone_ = false;
    int exceptions_ = std::uncaught_exceptions();
  };

  /// Runs `body` as the operation `entry`; adds every rank's last operation to its error. `peer`:
  /// for point to point.
  template <class Body>
  void run(Entry entry /*lives as long as the call*/, const Body& body,
           int peer = HangWatch::kAnyPeer) {
    try {
      if constexpr (std::is_invocable_v<Body, Entry&>) {
        body(entry);
      } else {
        body();
      }
    } catch (const Error& error) {
      if (is_harmless(error.code())) entry.group_goes_on();
      throw with_last_calls(
          spec_, error, [&](const Error& cause) { return watch_->explain(spec_, cause, peer); });
    }
  }

  const GroupSpec spec_;
  FlightRing& ring_;
  uint16_t group_;
  uint64_t sequence_ = 0;  // of collectives, which one thread at a time runs
  std::unique_ptr<GroupImpl> impl_;
  DiagnosticsThread diagnostics_thread_;
  std::shared_ptr<HangWatch> watch_;
};

}  // namespace

std::unique_ptr<GroupImpl> recorded(const GroupSpec& spec, std::unique_ptr<GroupImpl> impl) {
  return std::make_unique<RecordedGroup>(spec, std::move(impl));
}

}  // namespace lockstep::inline internal
