#include "lockstep/comm/mpi/mpi_group.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/checked_group.h"
#include "lockstep/comm/copy.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/letters.h"
#include "lockstep/comm/mpi/library.h"
#include "lockstep/comm/native/op_header.h"
#include "lockstep/comm/private_buffer.h"
#include "lockstep/comm/verdict.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a wait gives its core away only when somebody wants it, before it starts to sleep.
constexpr auto kYield = std::chrono::milliseconds(2);
constexpr auto kSleep = std::chrono::microseconds(100);

/// Not null, for buffers without elements: null means "in place" to MPI.
const void* some(const void* data) {
  static const std::byte nothing{};
  return data != nullptr ? data : &nothing;
}
void* some(void* data) {
  return const_cast<void*>(some(static_cast<const void*>(data)));
}

void combine(const void* in, void* inout, int64_t count, int dtype, int op) {
  const void* const ins[] = {in, inout};
  reduce(ins, std::span(&inout, 1), count, static_cast<DType>(dtype), static_cast<ReduceOp>(op), 1);
}

class MpiGroup final : public CheckedGroup {
 public:
  MpiGroup(const GroupSpec& spec, const LockstepMpiApi& api, void* data, void* checks)
      : CheckedGroup(spec), api_(api), data_(data), checks_(checks), letters_(spec) {}

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override {
    collective({.count = count, .kind = OpKind::kAllReduce, .dtype = dtype, .op = op}, waiting,
               [&] {
                 run(call_of(kMpiAllReduce, nullptr, some(data), count, dtype, op), waiting);
                 finish_average(data, count, dtype, op);
               });
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override {
    collective({.count = count, .root = root, .kind = OpKind::kReduce, .dtype = dtype, .op = op},
               waiting, [&] {
                 const bool own = spec_.rank == root;
                 run(call_of(kMpiReduce, own ? nullptr : some(data), own ? some(data) : nullptr,
                             count, dtype, op, root),
                     waiting);
                 if (own) finish_average(data, count, dtype, op);
               });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root,
                 const Waiting& waiting) override {
    collective(
        {.count = count, .root = root, .kind = OpKind::kBroadcast, .dtype = dtype}, waiting, [&] {
          run(call_of(kMpiBroadcast, nullptr, some(data), count, dtype, ReduceOp::kSum, root),
              waiting);
        });
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override {
    collective({.count = count, .kind = OpKind::kAllGather, .dtype = dtype}, waiting, [&] {
      const int64_t bytes = count * size_of(dtype);
      if (bytes > 0) copy_bytes(static_cast<std::byte*>(out) + spec_.rank * bytes, in, bytes);
      run(call_of(kMpiAllGather, nullptr, some(out), count, dtype), waiting);
    });
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override {
    collective({.count = count, .kind = OpKind::kReduceScatter, .dtype = dtype, .op = op}, waiting,
               [&] {
                 run(call_of(kMpiReduceScatter, some(in), some(out), count, dtype, op), waiting);
                 finish_average(out, count, dtype, op);
               });
  }
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;
  void barrier(const Waiting& waiting) override {
    collective({.kind = OpKind::kBarrier}, waiting, [] {});
  }
  void send(const void* data, int64_t count, DType dtype, int destination, int tag,
            const Waiting& waiting) override;
  void recv(void* data, int64_t count, DType dtype, int source, int tag,
            const Waiting& waiting) override;
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    std::shared_ptr<SharedBuffer> buffer;
    collective({.count = bytes, .kind = OpKind::kAllocate}, waiting,
               [&] { buffer = std::make_shared<PrivateBuffer>(bytes); });
    return buffer;
  }

 private:
  LockstepMpiCall call_of(int kind, const void* in, void* out, int64_t count, DType dtype,
                          ReduceOp op = ReduceOp::kSum, int peer = 0) const;
  void run(const LockstepMpiCall& call, const Waiting& waiting) { run_on(data_, call, waiting); }
  void run_on(void* communicator, const LockstepMpiCall& call, const Waiting& waiting);
  void finish_average(void* data, int64_t count, DType dtype, ReduceOp op) const {
    if (op == ReduceOp::kAvg) divide(data, count, dtype, spec_.size);
  }
  void check_call(const OpHeader& header) const override;
  void greatest(int64_t* values, int count, const Waiting& waiting) override {
    run_on(checks_, call_of(kMpiAllReduce, nullptr, values, count, DType::kInt64, ReduceOp::kMax),
           waiting);
  }
  void require_equal_counts(const Exchange& exchange, const Waiting& waiting);
  void bytes_to(int peer, const void* data, int64_t bytes, const Waiting& waiting);
  void bytes_from(int peer, void* data, int64_t bytes, const Waiting& waiting);

  const LockstepMpiApi& api_;
  void* const data_;  // MPI communicators
  void* const checks_;
  Letters letters_;
};

LockstepMpiCall MpiGroup::call_of(int kind, const void* in, void* out, int64_t count, DType dtype,
                                  ReduceOp op, int peer) const {
  const Parts parts = parts_of(dtype);
  const ReduceOp sum = op == ReduceOp::kAvg || op == ReduceOp::kPremulSum ? ReduceOp::kSum : op;
  LockstepMpiCall call{};
  call.kind = kind;
  call.in = in;
  call.out = out;
  call.count = static_cast<int>(count * parts.each);
  call.dtype = static_cast<int>(parts.dtype);
  call.op = static_cast<int>(op_on_parts(dtype, sum));
  call.peer = peer;
  return call;
}

/// MPI counts with an int.
void MpiGroup::check_call(const OpHeader& header) const {
  if (header.kind == OpKind::kAllocate) return;
  const int64_t most = std::numeric_limits<int>::max() / 2 / spec_.size;
  if (header.count <= most) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} elements; the back end mpi takes at most {} a rank in one call",
                          to_string(header.kind), header.count, most));
}

void MpiGroup::run_on(void* communicator, const LockstepMpiCall& call, const Waiting& waiting) {
  const auto require = [&](int error) {
    if (error == 0) return;
    char text[256];
    api_.text(error, text, sizeof text);
    throw Error(
        api_.is_truncation(error) != 0 ? ErrorCode::kMismatch : ErrorCode::kIo,
        fmt::format("{} on {}: MPI: {}", describe(header_), spec_.rank_name(spec_.rank), text));
  };
  void* request = nullptr;
  require(api_.start(communicator, &call, &request));
  const auto start = Clock::now();
  auto next_look = start + kLook;
  while (true) {
    int done = 0;
    require(api_.test(request, &done));
    if (done != 0) return;
    const auto now = Clock::now();
    if (waiting.deadline.passed()) {
      throw Error(ErrorCode::kTimeout, fmt::format("{} on {}: did not end in time",
                                                   describe(header_), spec_.rank_name(spec_.rank)));
    }
    if (now > next_look) {
      look_for_trouble();
      next_look = now + kLook;
    }
    if (now < start + kYield) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

void MpiGroup::require_equal_counts(const Exchange& exchange, const Waiting& waiting) {
  std::vector<int64_t> sends;
  std::vector<int64_t> theirs(exchange.sends.size());
  for (const auto& piece : exchange.sends) sends.push_back(piece.count);
  run_on(checks_, call_of(kMpiAllToAll, sends.data(), theirs.data(), 1, DType::kInt64), waiting);
  int64_t differs = 0;
  int wrong = -1;
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto at = static_cast<size_t>(rank);
    if (theirs[at] == exchange.receives[at].count) continue;
    differs = 1;
    wrong = rank;
  }
  greatest(&differs, 1, waiting);
  if (differs == 0) return;
  if (wrong < 0) {  // another rank knows more: it writes the verdict
    const auto key = verdict_key(spec_);
    spec_.store->wait(std::span(&key, 1), Deadline::after(kStoreLimit));
    look_for_trouble();
  }
  const auto at = static_cast<size_t>(wrong);
  throw agree_on_verdict(
      spec_,
      Error(ErrorCode::kMismatch,
            fmt::format("{}: {} sends {} elements to {}, which expects {}", describe(header_),
                        spec_.rank_name(wrong), theirs[at], spec_.rank_name(spec_.rank),
                        exchange.receives[at].count)),
      Deadline::after(kStoreLimit));
}

void MpiGroup::exchange(const Exchange& exchange, const void* in, void* out,
                        const Waiting& waiting) {
  const OpHeader header{.count = exchange.even() ? exchange.count : 0,
                        .root = exchange.root,
                        .kind = op_kind(exchange.kind),
                        .dtype = exchange.dtype};
  const int64_t size = size_of(exchange.dtype);
  const bool at_root = spec_.rank == exchange.root;
  const Piece& own_in = exchange.sends[static_cast<size_t>(spec_.rank)];
  const Piece& own_out = exchange.receives[static_cast<size_t>(spec_.rank)];
  // This rank's piece goes to its place, so that MPI may be told "in place".
  const auto place_own = [&] {
    if (own_in.count == 0) return;
    copy_bytes(static_cast<std::byte*>(out) + own_out.offset * size,
               static_cast<const std::byte*>(in) + own_in.offset * size, own_in.count * size);
  };
  const auto call = [&](int kind, const void* from, void* to, int64_t count) {
    return call_of(kind, from, to, count, exchange.dtype, ReduceOp::kSum, exchange.root);
  };
  collective(header, waiting, [&] {
    switch (exchange.kind) {
      case ExchangeKind::kGather:
        if (at_root) place_own();
        return run(call(kMpiGather, at_root ? nullptr : some(in), some(out), exchange.count),
                   waiting);
      case ExchangeKind::kScatter:
        if (at_root) place_own();
        return run(call(kMpiScatter, some(in), at_root ? nullptr : some(out), exchange.count),
                   waiting);
      case ExchangeKind::kAllToAll:
        return run(call(kMpiAllToAll, some(in), some(out), exchange.count), waiting);
      default:
        break;
    }
    require_equal_counts(exchange, waiting);
    const int64_t each = parts_of(exchange.dtype).each;
    std::vector<int> numbers[4];
    for (const auto& piece : exchange.sends) {
      numbers[0].push_back(static_cast<int>(piece.count * each));
      numbers[1].push_back(static_cast<int>(piece.offset * each));
    }
    for (const auto& piece : exchange.receives) {
      numbers[2].push_back(static_cast<int>(piece.count * each));
      numbers[3].push_back(static_cast<int>(piece.offset * each));
    }
    const bool gathers = exchange.kind == ExchangeKind::kAllGatherv;
    if (gathers) place_own();
    auto uneven = gathers ? call(kMpiAllGatherv, nullptr, some(out), own_in.count)
                          : call(kMpiAllToAllv, some(in), some(out), 0);
    uneven.in_counts = numbers[0].data();
    uneven.in_offsets = numbers[1].data();
    uneven.out_counts = numbers[2].data();
    uneven.out_offsets = numbers[3].data();
    run(uneven, waiting);
  });
}

/// All messages between two ranks have one MPI tag and so keep their order.
void MpiGroup::send(const void* data, int64_t count, DType dtype, int destination, int tag,
                    const Waiting& waiting) {
  try {
    const Envelope envelope{.count = count, .tag = tag, .dtype = dtype};
    bytes_to(destination, &envelope, sizeof envelope, waiting);
    bytes_to(destination, data, envelope.bytes(), waiting);
  } catch (const Error& error) {
    throw_agreed(error, false);
  }
}

void MpiGroup::recv(void* data, int64_t count, DType dtype, int source, int tag,
                    const Waiting& waiting) {
  const auto next = [&](void* to, int64_t bytes) { bytes_from(source, to, bytes, waiting); };
  try {
    letters_.take(
        spec_, source, {.count = count, .tag = tag, .dtype = dtype}, data,
        [&](Envelope& envelope) { next(&envelope, sizeof envelope); }, next);
  } catch (const Error& error) {
    throw_agreed(error, false);
  }
}

constexpr int64_t kPieceBytes = int64_t{1} << 30;

void MpiGroup::bytes_to(int peer, const void* data, int64_t bytes, const Waiting& waiting) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    run(call_of(kMpiSend, static_cast<const std::byte*>(data) + at, nullptr,
                std::min(bytes - at, kPieceBytes), DType::kUint8, ReduceOp::kSum, peer),
        waiting);
  }
}

void MpiGroup::bytes_from(int peer, void* data, int64_t bytes, const Waiting& waiting) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    run(call_of(kMpiRecv, nullptr, static_cast<std::byte*>(data) + at,
                std::min(bytes - at, kPieceBytes), DType::kUint8, ReduceOp::kSum, peer),
        waiting);
  }
}

/// Which MPI job this process belongs to, as far as its launcher says.
std::string mpi_job() {
  for (const char* const name : {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"}) {
    if (const char* const value = std::getenv(name)) return value;
  }
  return "?";
}

/// MPI's numbers of the group's ranks.
std::vector<int> mpi_ranks(const GroupSpec& spec, int own, Deadline deadline) {
  Store& store = *spec.store;
  const auto key_of = [&](int rank) { return fmt::format("{}/mpi/{}", spec.name, rank); };
  const auto job = mpi_job();
  if (spec.size == 1) return {own};
  store.set(key_of(spec.rank), fmt::format("{} {}", own, job), deadline);
  std::vector<int> ranks;
  for (int rank = 0; rank < spec.size; ++rank) {
    const auto text = store.get(key_of(rank), deadline);
    const size_t space = text.find(' ');
    if (text.substr(space + 1) != job) {
      throw Error(ErrorCode::kMismatch, fmt::format("back end mpi: {} is of MPI job {}, {} of {}",
                                                    spec.rank_name(spec.rank), job,
                                                    spec.rank_name(rank), text.substr(space + 1)));
    }
    ranks.push_back(std::stoi(text.substr(0, space)));
  }
  return ranks;
}

void* make_communicator(const LockstepMpiApi& api, const std::vector<int>& ranks, int tag) {
  void* communicator = nullptr;
  const int error = api.create(ranks.data(), static_cast<int>(ranks.size()), tag, &communicator);
  if (error == 0) return communicator;
  char text[256];
  api.text(error, text, sizeof text);
  throw Error(ErrorCode::kIo, fmt::format("back end mpi: MPI_Comm_create_group: {}", text));
}

}  // namespace

std::unique_ptr<GroupImpl> make_mpi_group(const GroupSpec& spec, Deadline deadline) {
  // Groups may be made by several threads; MPI is initialized by one.
  static std::mutex mutex;
  std::string why_not;
  const auto* const api = mpi::load_library(&why_not);
  if (api == nullptr) throw Error(ErrorCode::kUnavailable, why_not);
  {
    const std::lock_guard lock(mutex);
    if (api->init(combine) != 0) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("back end mpi: {} cannot be initialized with MPI_THREAD_MULTIPLE",
                              api->library()));
    }
  }
  const auto ranks = mpi_ranks(spec, api->world_rank(), deadline);
  const auto tag = static_cast<int>(std::hash<std::string>()(spec.name) % 8192 * 2);
  void* const data = make_communicator(*api, ranks, tag);
  return std::make_unique<MpiGroup>(spec, *api, data, make_communicator(*api, ranks, tag + 1));
}

bool mpi_usable(const GroupSpec&, std::string* why_not) {
  return mpi::load_library(why_not) != nullptr && mpi::launched_by_mpi(why_not);
}

}  // namespace lockstep
