#include "lockstep/comm/native/shm/attach.h"

#include <fmt/format.h>

#include <vector>

#include "lockstep/comm/creation/making.h"
#include "lockstep/comm/native/shm/life.h"
#include "lockstep/error.h"

namespace lockstep::shm {
namespace {

std::string key_of(const GroupSpec& spec) {
  return spec.name + "/shm";
}

Error did_not_come(const GroupSpec& spec, const std::vector<int>& ranks) {
  return Error(ErrorCode::kTimeout,
               fmt::format("creating the process group: {} did not come", spec.rank_names(ranks)));
}

ControlMemory make_control(const GroupSpec& spec) {
  const int64_t bytes = Control::control_bytes(spec.size);
  ControlMemory made;
  made.fd = make_memory(bytes);
  made.mapping = Mapping(made.fd.get(), bytes);
  auto& head = Control(made.mapping.data(), spec.size).head();
  head.magic = Head::kMagic;
  head.num_ranks = spec.size;
  return made;
}

/// The place that rank 0 published.
std::string place_of_control(const GroupSpec& spec, Deadline deadline) {
  try {
    return Making(spec).get(key_of(spec), {0}, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    throw did_not_come(spec, {0});
  }
}

Mapping open_control(const GroupSpec& spec, const std::string& where) {
  const auto remote = parse_remote_fd(where);
  if (!remote) throw Error(ErrorCode::kUnavailable, where);
  const UniqueFd fd = open_memory(*remote);
  Mapping mapping(fd.get(), Control::control_bytes(spec.size));
  const Control control(mapping.data(), spec.size);
  const auto& head = control.head();
  if (head.magic != Head::kMagic || head.num_ranks != spec.size) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("the shared memory of {} is not of this group", spec.rank_name(0)));
  }
  return mapping;
}

std::vector<int> not_attached(const Control& control, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (control.slot(rank).attached.load() == 0) ranks.push_back(rank);
  }
  return ranks;
}

/// Throws if a rank that had come has ended.
void check_attached(const GroupSpec& spec, const Control& control) {
  for (int rank = 0; rank < spec.size; ++rank) {
    auto& slot = control.slot(rank);
    if (rank == spec.rank || slot.attached.load() == 0 || look_at(slot) != Life::kDead) continue;
    throw Error(ErrorCode::kPeerLost,
                fmt::format("creating the process group: {} died", spec.rank_name(rank)));
  }
}

}  // namespace

ControlMemory map_control(const GroupSpec& spec, Deadline deadline) {
  if (spec.rank != 0) return {UniqueFd(), open_control(spec, place_of_control(spec, deadline))};
  try {
    ControlMemory made = make_control(spec);
    if (spec.size > 1) {
      spec.store->set(key_of(spec), to_string(to_remote(made.fd.get())), deadline);
    }
    return made;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable && spec.size > 1) {
      spec.store->set(key_of(spec), error.what(), deadline);
    }
    throw;
  }
}

void attach(const GroupSpec& spec, const Control& control, Deadline deadline) {
  auto& own = control.slot(spec.rank);
  own.cpus.add(usable_cpus());
  own.attached.store(1);
  auto& event = control.head().event;
  event.signal();
  Making making(spec);
  const auto absent = [&] { return not_attached(control, spec.size); };
  while (!absent().empty()) {
    event.wait([&] { return absent().empty(); }, std::chrono::milliseconds(5));
    check_attached(spec, control);
    making.look(absent());
    if (!deadline.passed() || absent().empty()) continue;
    throw did_not_come(spec, absent());
  }
  if (spec.rank == 0 && spec.size > 1) spec.store->erase(key_of(spec), deadline);
}

}  // namespace lockstep::shm
