#include "lockstep/comm/process_group.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/backends.h"
#include "lockstep/comm/group_core.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/rendezvous.h"

namespace lockstep {
namespace {

Error invalid(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, what);
}

void check_rank(const char* call, const char* what, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw invalid(fmt::format("{}: {} is {}, must be in [0, {})", call, what, rank, size));
}

/// `parts` * `count` elements must have a size in bytes.
void check_buffer(const char* call, const void* data, int64_t count, DType dtype, int parts = 1) {
  if (static_cast<int>(dtype) >= kNumDTypes) {
    throw invalid(fmt::format("{}: there is no dtype {}", call, static_cast<int>(dtype)));
  }
  if (count < 0 || count > std::numeric_limits<int64_t>::max() / size_of(dtype) / parts) {
    throw invalid(fmt::format("{}: count is {}", call, count));
  }
  if (count > 0 && data == nullptr) {
    throw invalid(fmt::format("{}: null pointer for {} elements", call, count));
  }
}

void check_op(const char* call, DType dtype, ReduceOp op, const CollectiveOptions& options) {
  if (static_cast<int>(op) >= kNumReduceOps) {
    throw invalid(fmt::format("{}: there is no reduction {}", call, static_cast<int>(op)));
  }
  if (!can_reduce(dtype, op)) {
    throw invalid(fmt::format("{}: {} has no {}; it has {}", call, to_string(dtype), to_string(op),
                              reductions_of(dtype)));
  }
  if (options.factor != 1 && op != ReduceOp::kPremulSum) {
    throw invalid(fmt::format("{}: factor {} is for premul_sum, the call is for {}", call,
                              options.factor, to_string(op)));
  }
}

/// What a rank's values are after the multiplication of kPremulSum: a copy, unless by 1.
class Scaled {
 public:
  Scaled(const void* in, int64_t count, DType dtype, double factor) : data_(in) {
    if (factor == 1) return;
    copy_ =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(count * size_of(dtype)));
    scale(in, copy_.get(), count, dtype, factor);
    data_ = copy_.get();
  }
  const void* data() const { return data_; }

 private:
  const void* data_;
  std::unique_ptr<std::byte[]> copy_;
};

void check_members(const std::vector<int>& ranks, int size) {
  if (ranks.empty()) throw invalid("subgroup: no ranks given");
  std::set<int> seen;
  for (const int rank : ranks) {
    check_rank("subgroup", "a rank", rank, size);
    if (!seen.insert(rank).second) throw invalid(fmt::format("subgroup: rank {} twice", rank));
  }
}

/// The same on all members and for no other members; short, since it begins keys in the store.
std::string subgroup_suffix(const std::vector<int>& ranks, int number) {
  std::string text;
  for (const int rank : ranks) text += fmt::format("{}.", rank);
  const Digest digest = hmac_sha256("subgroup", text);
  return fmt::format("/{:02x}.{}", fmt::join(digest.begin(), digest.begin() + 12, ""), number);
}

void check_peer(const char* call, const char* what, int peer, const GroupSpec& spec) {
  check_rank(call, what, peer, spec.size);
  if (peer == spec.rank) throw invalid(fmt::format("{}: {} is this rank itself", call, what));
}

std::shared_ptr<GroupCore> make_core(const GroupSpec& spec, const std::string& name) {
  const Backend& backend = choose_backend(name, spec);
  auto impl = backend.create(spec, Deadline::after(spec.timeout));
  return std::make_shared<GroupCore>(spec, std::string(backend.name), std::move(impl));
}

}  // namespace

bool Work::done() const {
  return !state_ || state_->done();
}

void Work::wait() {
  if (state_) state_->wait();
}

ProcessGroup ProcessGroup::create(const World& world, const GroupOptions& options) {
  if (world.size < 1 || world.rank < 0 || world.rank >= world.size) {
    throw invalid(fmt::format("rank {} of {} ranks", world.rank, world.size));
  }
  if (options.timeout <= 0ms) throw invalid("GroupOptions::timeout must be positive");
  const auto spec = meet(world, options.backend, options.timeout, Deadline::after(options.timeout));
  return ProcessGroup(make_core(spec, options.backend));
}

int ProcessGroup::rank() const {
  return core_->spec().rank;
}

int ProcessGroup::size() const {
  return core_->spec().size;
}

const std::string& ProcessGroup::backend() const {
  return core_->backend();
}

int ProcessGroup::world_rank(int group_rank) const {
  check_rank("world_rank", "rank", group_rank, size());
  return core_->spec().world_ranks[static_cast<size_t>(group_rank)];
}

int ProcessGroup::group_rank(int world_rank) const {
  const auto& ranks = core_->spec().world_ranks;
  const auto at = std::find(ranks.begin(), ranks.end(), world_rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

ProcessGroup ProcessGroup::subgroup(const std::vector<int>& ranks) const {
  check_members(ranks, size());
  const auto spec =
      core_->spec().subset(ranks, subgroup_suffix(ranks, core_->count_subgroup(ranks)));
  return ProcessGroup(make_core(spec, backend()));
}

Work ProcessGroup::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                              const CollectiveOptions& options) {
  check_buffer("all_reduce", data, count, dtype);
  check_op("all_reduce", dtype, op, options);
  const double factor = options.factor;
  return core_->collective(count * size_of(dtype), options.async,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             if (factor != 1) scale(data, data, count, dtype, factor);
                             impl.all_reduce(data, count, dtype, op, waiting);
                           });
}

Work ProcessGroup::broadcast(void* data, int64_t count, DType dtype, int root,
                             const CollectiveOptions& options) {
  check_buffer("broadcast", data, count, dtype);
  check_rank("broadcast", "root", root, size());
  return core_->collective(count * size_of(dtype), options.async,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             impl.broadcast(data, count, dtype, root, waiting);
                           });
}

Work ProcessGroup::all_gather(const void* in, void* out, int64_t count, DType dtype,
                              const CollectiveOptions& options) {
  check_buffer("all_gather", in, count, dtype, size());
  check_buffer("all_gather", out, count, dtype, size());
  return core_->collective(count * size_of(dtype) * size(), options.async,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             impl.all_gather(in, out, count, dtype, waiting);
                           });
}

Work ProcessGroup::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                  ReduceOp op, const CollectiveOptions& options) {
  check_buffer("reduce_scatter", in, count, dtype, size());
  check_buffer("reduce_scatter", out, count, dtype, size());
  check_op("reduce_scatter", dtype, op, options);
  const double factor = options.factor;
  return core_->collective(count * size_of(dtype) * size(), options.async,
                           [=, all = count * size()](GroupImpl& impl, const Waiting& waiting) {
                             const Scaled scaled(in, all, dtype, factor);
                             impl.reduce_scatter(scaled.data(), out, count, dtype, op, waiting);
                           });
}

Work ProcessGroup::send(const void* data, int64_t count, DType dtype, int destination, int tag) {
  check_buffer("send", data, count, dtype);
  check_peer("send", "destination", destination, core_->spec());
  return core_->point_to_point(GroupCore::Direction::kSend, destination,
                               [=](GroupImpl& impl, const Waiting& waiting) {
                                 impl.send(data, count, dtype, destination, tag, waiting);
                               });
}

Work ProcessGroup::recv(void* data, int64_t count, DType dtype, int source, int tag) {
  check_buffer("recv", data, count, dtype);
  check_peer("recv", "source", source, core_->spec());
  return core_->point_to_point(GroupCore::Direction::kRecv, source,
                               [=](GroupImpl& impl, const Waiting& waiting) {
                                 impl.recv(data, count, dtype, source, tag, waiting);
                               });
}

void ProcessGroup::barrier() {
  core_->blocking([](GroupImpl& impl, const Waiting& waiting) { impl.barrier(waiting); });
}

std::shared_ptr<SharedBuffer> ProcessGroup::allocate(int64_t bytes) {
  if (bytes < 0) throw invalid(fmt::format("allocate: {} bytes", bytes));
  std::shared_ptr<SharedBuffer> buffer;
  core_->blocking(
      [&](GroupImpl& impl, const Waiting& waiting) { buffer = impl.allocate(bytes, waiting); });
  return buffer;
}

}  // namespace lockstep
