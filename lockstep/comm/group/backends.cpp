#include "lockstep/comm/group/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/mpi/library.h"
#include "lockstep/comm/mpi/mpi_group.h"
#include "lockstep/comm/native/hierarchical_group.h"
#include "lockstep/comm/native/shm/shm_group.h"
#include "lockstep/comm/topology.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool always(std::string*) {
  return true;
}

bool always_usable(const GroupSpec&, std::string*) {
  return true;
}

bool mpi_is_built_in(std::string* why_not) {
  return mpi::load_library(why_not) != nullptr;
}

/// Best first. Other layers add theirs before the first group is made.
std::vector<Backend>& table() {
  static std::vector<Backend> backends = {
      {"native", "shared memory within a host, TCP between hosts; one order of sums", always,
       always_usable, make_native_group, /*for_devices=*/false, /*one_order=*/true},
      {"mpi", "the MPI library, for ranks that mpirun or srun started", mpi_is_built_in, mpi_usable,
       make_mpi_group},
  };
  return backends;
}

const Backend& first_usable(const GroupSpec& spec) {
  std::string reasons;
  for (const bool for_devices : {true, false}) {
    for (const auto& backend : backends()) {
      if (backend.for_devices != for_devices) continue;
      std::string why_not;
      if (backend.usable(spec, &why_not)) {
        log_debug(fmt::format("group {}: back end {} ({}){}", spec.name, backend.name,
                              backend.summary, reasons));
        return backend;
      }
      reasons += fmt::format("; not {}: {}", backend.name, why_not);
    }
  }
  throw Error(ErrorCode::kUnavailable, "no back end can serve this group" + reasons);
}

/// Back ends that lockstep/tensor adds to the table of programs that link it.
constexpr std::string_view kOfTensors[] = {"c10d:gloo", "c10d:nccl", "hccl"};

bool takes_tensors(const std::string& name) {
  return std::find(std::begin(kOfTensors), std::end(kOfTensors), name) != std::end(kOfTensors);
}

Error unknown_backend(const std::string& name) {
  std::vector<std::string> names = {"auto"};
  for (const auto& backend : backends()) names.emplace_back(backend.name);
  const std::string with_prefix = "c10d:" + name;  // "gloo" is its name elsewhere
  const auto nearest = takes_tensors(with_prefix) ? fmt::format(", did you mean '{}'?", with_prefix)
                                                  : did_you_mean(name, names);
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("unknown back end '{}'{} There is: {}", name,
                           nearest.empty() ? "." : nearest, fmt::join(names, ", ")));
}

}  // namespace

std::unique_ptr<GroupImpl> make_native_group(const GroupSpec& spec, Deadline deadline) {
  const Topology topology = make_topology(spec.host_ids);
  if (topology.num_hosts() == 1) return make_shm_group(spec, deadline);
  return make_hierarchical_group(spec, deadline);
}

std::span<const Backend> backends() {
  return table();
}

bool sums_in_one_order(const std::string& name) {
  return sums_in_one_order(name, backends());
}

bool sums_in_one_order(const std::string& name, std::span<const Backend> choices) {
  const auto asked_for = [&](const Backend& backend) {
    if (name == "auto") return backend.for_devices || &backend == &choices.front();
    return backend.name == name;
  };
  const auto in_any_order = [&](const Backend& backend) {
    return asked_for(backend) && !backend.one_order;
  };
  return std::any_of(choices.begin(), choices.end(), asked_for) &&
         std::none_of(choices.begin(), choices.end(), in_any_order);
}

bool register_backend(const Backend& backend) {
  table().push_back(backend);
  return true;
}

std::vector<BackendReport> report_backends() {
  std::vector<BackendReport> reports;
  for (const auto& backend : backends()) {
    BackendReport report;
    report.name = backend.name;
    report.summary = backend.summary;
    report.built_in = backend.built_in(&report.why_not);
    report.usable = report.built_in && backend.usable(GroupSpec{}, &report.why_not);
    reports.push_back(std::move(report));
  }
  return reports;
}

const Backend& choose_backend(const std::string& name, const GroupSpec& spec) {
  if (name == "auto") return first_usable(spec);
  for (const auto& backend : backends()) {
    if (backend.name != name) continue;
    std::string why_not;
    if (backend.usable(spec, &why_not)) return backend;
    // A name that cannot be served is the caller's mistake; no restart repairs it.
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("back end '{}' cannot run here: {}", name, why_not));
  }
  if (takes_tensors(name)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("back end '{}' cannot run here: it needs libtorch, which this program "
                            "does not link; programs that use lockstep/tensor have it",
                            name));
  }
  throw unknown_backend(name);
}

}  // namespace lockstep::inline internal
