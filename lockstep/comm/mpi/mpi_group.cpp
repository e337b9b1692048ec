#include "lockstep/comm/mpi/mpi_group.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "lockstep/comm/bootstrap/members.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/checked_group.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/comm/mpi/library.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// Before it sleeps, a wait only yields its core to other threads, for this long.
constexpr auto kYield = std::chrono::milliseconds(2);
constexpr auto kSleep = std::chrono::microseconds(100);

/// Never null, for buffers without elements: null means "in place" to MPI.
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
      : CheckedGroup(spec), api_(api), data_(data), checks_(checks) {}
  ~MpiGroup() override { orphaned_buffers_.leave_to_process(); }

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

 private:
  LockstepMpiCall call_of(int kind, const void* in, void* out, int64_t count, DType dtype,
                          ReduceOp op = ReduceOp::kSum, int peer = 0) const;
  void run(const LockstepMpiCall& call, const Waiting& waiting) {
    run_on(data_, call, this_collective(), waiting);
  }
  void run_on(void* communicator, const LockstepMpiCall& call, const WaitReason& reason,
              const Waiting& waiting);
  void finish_average(void* data, int64_t count, DType dtype, ReduceOp op) const {
    if (op == ReduceOp::kAvg) divide(data, count, dtype, spec_.size);
  }
  void run_uneven(LockstepMpiCall call, const Exchange& exchange, const Waiting& waiting);
  void check_elements(std::string_view call, int64_t elements, DType dtype) const;

  void check_call(const OpHeader& header) const override;
  void fold(int64_t* values, int count, ReduceOp op, const Waiting& waiting) override {
    run_on(checks_, call_of(kMpiAllReduce, nullptr, values, count, DType::kInt64, op),
           this_collective(), waiting);
  }
  void bytes_to(int peer, const void* data, int64_t bytes, const WaitReason& reason,
                const Waiting& waiting) override;
  void bytes_from(int peer, void* data, int64_t bytes, const WaitReason& reason,
                  const Waiting& waiting) override;
  /// MPI_Finalize would wait for ranks that do not come.
  void stop(bool) noexcept override { api_.abandon(spec_.timeout.count()); }

  const LockstepMpiApi& api_;
  void* const data_;  // MPI communicators
  void* const checks_;
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

/// MPI counts elements with an int. `elements`: of the larger of the two buffers.
void MpiGroup::check_elements(std::string_view call, int64_t elements, DType dtype) const {
  const int64_t most = std::numeric_limits<int>::max() / parts_of(dtype).each;
  if (elements <= most) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} elements in one buffer; the back end mpi takes at most {} of {}",
                          call, elements, most, to_string(dtype)));
}

void MpiGroup::check_call(const OpHeader& header) const {
  int64_t parts = 1;
  switch (header.kind) {
    case OpKind::kAllocate:
      return;
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kGather:
    case OpKind::kScatter:
    case OpKind::kAllToAll:
      parts = spec_.size;
      break;
    default:
      break;
  }
  check_elements(to_string(header.kind), header.count * parts, header.dtype);
}

void MpiGroup::run_on(void* communicator, const LockstepMpiCall& call, const WaitReason& reason,
                      const Waiting& waiting) {
  const auto require = [&](int error) {
    if (error == 0) return;
    char text[256];
    api_.text(error, text, sizeof text);
    throw Error(api_.is_truncation(error) != 0 ? ErrorCode::kMismatch : ErrorCode::kIo,
                fmt::format("{}: MPI: {}", reason.text(), text));
  };
  void* request = nullptr;
  require(api_.start(communicator, &call, &request));
  const auto start = Clock::now();
  auto next_look = start + kLookPause;
  while (true) {
    int done = 0;
    require(api_.test(request, &done));
    if (done != 0) return;
    const auto now = Clock::now();
    if (waiting.deadline.passed()) {
      throw Error(ErrorCode::kTimeout, fmt::format("{}: did not end in time", reason.text()));
    }
    if (now > next_look) {
      look_for_trouble(reason);
      next_look = now + kLookPause;
    }
    if (now < start + kYield) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

void MpiGroup::exchange(const Exchange& exchange, const void* in, void* out,
                        const Waiting& waiting) {
  if (!exchange.even()) {
    check_elements(to_string(exchange.kind), std::max(exchange.in_count(), exchange.out_count()),
                   exchange.dtype);
  }
  const int64_t size = size_of(exchange.dtype);
  const bool at_root = spec_.rank == exchange.root;
  const ExchangeBlock& own_in = exchange.sends[static_cast<size_t>(spec_.rank)];
  const ExchangeBlock& own_out = exchange.receives[static_cast<size_t>(spec_.rank)];
  // Copies this rank's block to its place, so that MPI may work "in place".
  const auto place_own = [&] {
    if (own_in.count == 0) return;
    copy_bytes(static_cast<std::byte*>(out) + own_out.offset * size,
               static_cast<const std::byte*>(in) + own_in.offset * size, own_in.count * size);
  };
  const auto call = [&](int kind, const void* from, void* to, int64_t count) {
    return call_of(kind, from, to, count, exchange.dtype, ReduceOp::kSum, exchange.root);
  };
  collective(header_of(exchange), waiting, [&] {
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
    const bool gathers = exchange.kind == ExchangeKind::kAllGatherv;
    if (gathers) place_own();
    run_uneven(gathers ? call(kMpiAllGatherv, nullptr, some(out), own_in.count)
                       : call(kMpiAllToAllv, some(in), some(out), 0),
               exchange, waiting);
  });
}

void MpiGroup::run_uneven(LockstepMpiCall call, const Exchange& exchange, const Waiting& waiting) {
  const int64_t each = parts_of(exchange.dtype).each;
  const auto size = static_cast<size_t>(spec_.size);
  std::vector<int> numbers(4 * size);
  for (size_t rank = 0; rank < size; ++rank) {
    numbers[rank] = static_cast<int>(exchange.sends[rank].count * each);
    numbers[size + rank] = static_cast<int>(exchange.sends[rank].offset * each);
    numbers[2 * size + rank] = static_cast<int>(exchange.receives[rank].count * each);
    numbers[3 * size + rank] = static_cast<int>(exchange.receives[rank].offset * each);
  }
  with_buffer(std::move(numbers), [&](const int* of_rank) {
    call.in_counts = of_rank;
    call.in_offsets = of_rank + size;
    call.out_counts = of_rank + 2 * size;
    call.out_offsets = of_rank + 3 * size;
    run(call, waiting);
  });
}

constexpr int64_t kPieceBytes = int64_t{1} << 30;

void MpiGroup::bytes_to(int peer, const void* data, int64_t bytes, const WaitReason& reason,
                        const Waiting& waiting) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    run_on(data_,
           call_of(kMpiSend, static_cast<const std::byte*>(data) + at, nullptr,
                   std::min(bytes - at, kPieceBytes), DType::kUint8, ReduceOp::kSum, peer),
           reason, waiting);
  }
}

void MpiGroup::bytes_from(int peer, void* data, int64_t bytes, const WaitReason& reason,
                          const Waiting& waiting) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    run_on(data_,
           call_of(kMpiRecv, nullptr, static_cast<std::byte*>(data) + at,
                   std::min(bytes - at, kPieceBytes), DType::kUint8, ReduceOp::kSum, peer),
           reason, waiting);
  }
}

/// The MPI job of this process, according to its launcher.
std::string mpi_job() {
  for (const char* const name : {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"}) {
    if (const char* const value = std::getenv(name)) return value;
  }
  return "?";
}

/// MPI's numbers of the group's ranks.
std::vector<int> mpi_ranks(const GroupSpec& spec, const LockstepMpiApi& api, Deadline deadline) {
  Store& store = *spec.store;
  const auto key_of = [&](int rank) { return fmt::format("{}/mpi/{}", spec.name, rank); };
  const auto job = mpi_job();
  const int own = api.world_rank();
  if (spec.size == 1) return {own};
  store.set(key_of(spec.rank), fmt::format("{} {}", own, job), deadline);
  std::vector<int> ranks;
  for (int rank = 0; rank < spec.size; ++rank) {
    const auto text = store.get(key_of(rank), deadline);
    const size_t space = text.find(' ');
    const auto theirs = text.substr(space + 1);
    const int number = std::stoi(text.substr(0, space));
    // Ranks that another library's launcher started are one job each.
    if (theirs != job || std::count(ranks.begin(), ranks.end(), number) > 0) {
      throw Error(
          ErrorCode::kMismatch,
          fmt::format("back end mpi: {} is of MPI job {}, {} is number {} of job {}: one launcher "
                      "of {} must start all ranks",
                      spec.rank_name(spec.rank), job, spec.rank_name(rank), number, theirs,
                      api.library()));
    }
    ranks.push_back(number);
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
  // Several threads may make groups; one initializes MPI.
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
  await_members(spec, deadline);
  const auto ranks = mpi_ranks(spec, *api, deadline);
  const auto tag = static_cast<int>(std::hash<std::string>()(spec.name) % 8192 * 2);
  void* const data = make_communicator(*api, ranks, tag);
  return std::make_unique<MpiGroup>(spec, *api, data, make_communicator(*api, ranks, tag + 1));
}

bool mpi_usable(const GroupSpec&, std::string* why_not) {
  return mpi::load_library(why_not) != nullptr && mpi::launched_by_mpi(why_not);
}

}  // namespace lockstep::inline internal
