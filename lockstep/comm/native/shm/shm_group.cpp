#include "lockstep/comm/native/shm/shm_group.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "lockstep/comm/bytes.h"
#include "lockstep/comm/creation/making.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/native/shm/attach.h"
#include "lockstep/comm/native/shm/exchange.h"
#include "lockstep/comm/native/shm/life.h"
#include "lockstep/comm/native/shm/mailbox.h"
#include "lockstep/comm/native/shm/memory.h"
#include "lockstep/comm/native/shm/staged.h"
#include "lockstep/comm/spans.h"

namespace lockstep::inline internal {
namespace {

using shm::Control;
using shm::ControlMemory;
using shm::kCacheLine;
using shm::kInlineBytes;

const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}
/// Returns `spec` when all ranks have come. A rank that fails here leaves; ranks that are further
/// along first receive the reason.
const GroupSpec& attached(const GroupSpec& spec, const Control& control, Deadline deadline) {
  try {
    shm::attach(spec, control, deadline);
  } catch (const Error& error) {
    const Error cause = unmade(spec, error);
    shm::Barrier(spec, control).fail(cause);
    throw cause;
  }
  return spec;
}

class ShmGroupImpl final : public ShmGroup {
 public:
  ShmGroupImpl(const GroupSpec& spec, ControlMemory memory, Deadline deadline)
      : spec_(spec),
        mapping_(std::move(memory.mapping)),
        control_(mapping_.data(), spec.size),
        life_(std::in_place, control_.slot(spec.rank)),
        barrier_(attached(spec, control_, deadline), control_),
        memory_(spec_, control_),
        mailbox_(spec_, control_, barrier_, memory_),
        ins_(static_cast<size_t>(spec.size)),
        outs_(static_cast<size_t>(spec.size)) {}

  ~ShmGroupImpl() override {
    life_.reset();
    control_.head().event.signal();  // ranks that wait for this one look at once
  }

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override;
  void broadcast(void* data, int64_t count, DType dtype, int root, const Waiting& waiting) override;
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override;
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override;
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override;
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;
  void barrier(const Waiting& waiting) override {
    barrier_.enter(header_of(OpKind::kBarrier, 0), {}, nullptr, 0, waiting);
    finish();
  }
  bool try_send(const void* data, const MessageHeader& message, int destination,
                CallSite) override {
    return mailbox_.try_send(data, message, destination);
  }
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting) override {
    return agreed([&] { return mailbox_.send(data, message, destination, waiting); });
  }
  bool receive(int source, MessageSink& sink, const Waiting& waiting) override {
    return agreed([&] { return mailbox_.receive(source, sink, waiting); });
  }
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    barrier_.enter(header_of(OpKind::kAllocate, bytes), {}, nullptr, 0, waiting);
    auto buffer = memory_.allocate(bytes, barrier_, waiting);
    finish();
    return buffer;
  }

  std::vector<std::byte*> enter(const OpHeader& header, const void* data, int64_t bytes,
                                const Waiting& waiting) override {
    held_ = memory_.find(data, bytes);
    barrier_.enter(header, held_.shared, nullptr, 0, waiting);
    return reachable();
  }
  void sync(const Waiting& waiting) override { barrier_.sync(waiting); }
  void finish() override {
    barrier_.finish();
    held_ = {};
  }
  void tell_as(uint64_t number) override { barrier_.tell_as(number); }
  void fail(const Error& error) override { barrier_.fail(error); }
  void give_up(const Error& error, Deadline deadline) noexcept override {
    barrier_.fail(try_to_agree(spec_, error, deadline));  // ranks that split the group look there
  }
  void set_alarm(std::function<bool()> alarm) override { barrier_.set_alarm(std::move(alarm)); }
  const std::vector<int>& awaited() const override { return barrier_.awaited(); }

 private:
  static constexpr int kAllRanks = -1;

  /// An error that ends a message ends the group.
  template <class Body>
  bool agreed(const Body& body) {
    try {
      return body();
    } catch (const Error& error) {
      barrier_.fail(error);
      throw;
    } catch (const std::exception& error) {  // such as a thread that cannot be started
      barrier_.fail(Error(ErrorCode::kInternal, error.what()));
      throw;
    }
  }
  std::vector<std::byte*> reachable() const;
  shm::StagedCall staged(DType dtype, const Waiting& waiting) {
    return {barrier_, control_, spec_.rank, spec_.size, dtype, waiting};
  }
  void inline_reduce(int64_t bytes, int64_t offset, void* out, int64_t count, DType dtype,
                     ReduceOp op);
  void reduce_in_place(const std::vector<std::byte*>& slots, int64_t count, DType dtype,
                       ReduceOp op, int root = kAllRanks);
  [[noreturn]] void refuse_counts(const shm::ExchangeCall::Disagreement& found,
                                  const OpHeader& header);

  const GroupSpec spec_;
  shm::Mapping mapping_;
  const Control control_;
  std::optional<shm::LifeKeeper> life_;
  shm::Barrier barrier_;
  shm::SharedMemoryList memory_;
  shm::Mailbox mailbox_;
  shm::SharedMemoryList::Found held_;  // keeps the memory of the operation in progress mapped
  std::vector<const void*> ins_;       // one per rank, for the kernels
  std::vector<void*> outs_;
};

std::vector<std::byte*> ShmGroupImpl::reachable() const {
  std::vector<std::byte*> places;
  const uint64_t segment = held_.shared.segment;
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto& post = barrier_.post(rank);
    if (segment == 0 || post.segment != segment) return {};
    places.push_back(held_.memory->slot(rank) + post.offset);
  }
  return places;
}

/// Reduces the data at `offset` bytes in every rank's inline data, of which all `bytes` were
/// posted.
void ShmGroupImpl::inline_reduce(int64_t bytes, int64_t offset, void* out, int64_t count,
                                 DType dtype, ReduceOp op) {
  for (int rank = 0; rank < spec_.size; ++rank) {
    ins_[static_cast<size_t>(rank)] = barrier_.inline_data(rank, bytes) + offset;
  }
  lockstep::reduce(ins_, std::span(&out, 1), count, dtype, op, spec_.size);
}

/// Reduces this rank's slice of all slots in place, and writes it to all slots or to root's.
void ShmGroupImpl::reduce_in_place(const std::vector<std::byte*>& slots, int64_t count, DType dtype,
                                   ReduceOp op, int root) {
  const int64_t size = size_of(dtype);
  const Span part =
      slice_of(count, spec_.size, spec_.rank, static_cast<int64_t>(kCacheLine) / size);
  for (size_t rank = 0; rank < slots.size(); ++rank) {
    ins_[rank] = outs_[rank] = slots[rank] + part.begin * size;
  }
  const std::span<void* const> outs(outs_);
  lockstep::reduce(ins_, root == kAllRanks ? outs : outs.subspan(static_cast<size_t>(root), 1),
                   part.size(), dtype, op, spec_.size);
}

void ShmGroupImpl::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                              const Waiting& waiting) {
  const int64_t bytes = count * size_of(dtype);
  const auto header = header_of(OpKind::kAllReduce, count, dtype, op);
  if (bytes <= kInlineBytes) {
    barrier_.enter(header, {}, data, bytes, waiting);
    inline_reduce(bytes, 0, data, count, dtype, op);
  } else if (const auto slots = enter(header, data, bytes, waiting); !slots.empty()) {
    reduce_in_place(slots, count, dtype, op);
    barrier_.sync(waiting);
  } else {
    shm::staged_all_reduce(staged(dtype, waiting), bytes_of(data), count, op);
  }
  finish();
}

void ShmGroupImpl::reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
                          const Waiting& waiting) {
  const int64_t bytes = count * size_of(dtype);
  const auto header = header_of(OpKind::kReduce, count, dtype, op, root);
  if (bytes <= kInlineBytes) {
    barrier_.enter(header, {}, data, bytes, waiting);
    if (spec_.rank == root) inline_reduce(bytes, 0, data, count, dtype, op);
  } else if (const auto slots = enter(header, data, bytes, waiting); !slots.empty()) {
    reduce_in_place(slots, count, dtype, op, root);
    barrier_.sync(waiting);
  } else {
    shm::staged_reduce(staged(dtype, waiting), bytes_of(data), count, op, root);
  }
  finish();
}

void ShmGroupImpl::exchange(const Exchange& exchange, const void* in, void* out,
                            const Waiting& waiting) {
  const auto header = header_of(exchange);
  const auto call = staged(exchange.dtype, waiting);
  shm::ExchangeCall here(call, exchange, in, out);
  here.hand_in();
  // A rank that sends nothing can still show by its output which memory it has mapped.
  const bool sends = exchange.in_count() > 0;
  const auto slots = enter(
      header, sends ? in : out,
      (sends ? exchange.in_count() : exchange.out_count()) * size_of(exchange.dtype), waiting);
  if (const auto found = here.disagreement()) refuse_counts(*found, header);
  here.run(slots);
  finish();
}

void ShmGroupImpl::refuse_counts(const shm::ExchangeCall::Disagreement& found,
                                 const OpHeader& header) {
  const Error error(ErrorCode::kMismatch,
                    fmt::format("{}: {} sends {} elements to {}, which expects {}",
                                describe(barrier_.header()), spec_.rank_name(found.sender),
                                found.sent, spec_.rank_name(spec_.rank), found.expected));
  barrier_.fail(error);
  barrier_.check({}, {[&] { return describe(header); }});
  throw error;  // another rank died while it wrote the group error; this one is as valid
}

void ShmGroupImpl::broadcast(void* data, int64_t count, DType dtype, int root,
                             const Waiting& waiting) {
  const int64_t bytes = count * size_of(dtype);
  const auto header = header_of(OpKind::kBroadcast, count, dtype, ReduceOp::kSum, root);
  if (bytes <= kInlineBytes) {
    barrier_.enter(header, {}, data, spec_.rank == root ? bytes : 0, waiting);
    if (spec_.rank != root) copy_bytes(data, barrier_.inline_data(root, bytes), bytes);
  } else if (const auto slots = enter(header, data, bytes, waiting); !slots.empty()) {
    copy_bytes(data, slots[static_cast<size_t>(root)], bytes);
    barrier_.sync(waiting);
  } else {
    shm::staged_broadcast(staged(dtype, waiting), bytes_of(data), count, root);
  }
  finish();
}

void ShmGroupImpl::all_gather(const void* in, void* out, int64_t count, DType dtype,
                              const Waiting& waiting) {
  const int64_t bytes = count * size_of(dtype);
  const auto header = header_of(OpKind::kAllGather, count, dtype);
  const auto part = [&](int rank) { return bytes_of(out) + rank * bytes; };
  if (bytes <= kInlineBytes) {
    barrier_.enter(header, {}, in, bytes, waiting);
    for (int rank = 0; rank < spec_.size; ++rank) {
      copy_bytes(part(rank), barrier_.inline_data(rank, bytes), bytes);
    }
  } else if (const auto slots = enter(header, in, bytes, waiting); !slots.empty()) {
    for (int step = 0; step < spec_.size; ++step) {
      // Each rank starts with its own part, so that they do not all read from one rank at a time.
      const int rank = (spec_.rank + step) % spec_.size;
      copy_bytes(part(rank), slots[static_cast<size_t>(rank)], bytes);
    }
    barrier_.sync(waiting);
  } else {
    shm::staged_all_gather(staged(dtype, waiting), bytes_of(in), bytes_of(out), count);
  }
  finish();
}

void ShmGroupImpl::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                  ReduceOp op, const Waiting& waiting) {
  const int64_t bytes = count * size_of(dtype);
  const int64_t all_bytes = bytes * spec_.size;
  const auto header = header_of(OpKind::kReduceScatter, count, dtype, op);
  if (all_bytes <= kInlineBytes) {
    barrier_.enter(header, {}, in, all_bytes, waiting);
    inline_reduce(all_bytes, spec_.rank * bytes, out, count, dtype, op);
  } else if (const auto slots = enter(header, in, all_bytes, waiting); !slots.empty()) {
    for (size_t rank = 0; rank < slots.size(); ++rank) {
      ins_[rank] = slots[rank] + spec_.rank * bytes;
    }
    lockstep::reduce(ins_, std::span(&out, 1), count, dtype, op, spec_.size);
    barrier_.sync(waiting);
  } else {
    shm::staged_reduce_scatter(staged(dtype, waiting), bytes_of(in), bytes_of(out), count, op);
  }
  finish();
}

}  // namespace

std::unique_ptr<ShmGroup> make_shm_group(const GroupSpec& spec, Deadline deadline) {
  return std::make_unique<ShmGroupImpl>(spec, shm::map_control(spec, deadline), deadline);
}

}  // namespace lockstep::inline internal
