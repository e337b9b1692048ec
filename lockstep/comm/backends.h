#pragma once
// The back ends there are, what each can do, and which one a group gets.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep {

struct Backend {
  std::string_view name;     ///< What GroupOptions::backend and --backend take.
  std::string_view summary;  ///< One line for people.
  /// Does this program have it? If not, `why_not` says why.
  bool (*built_in)(std::string* why_not);
  /// Built in, and able to serve this group on this machine? If not, `why_not` says why.
  bool (*usable)(const GroupSpec& spec, std::string* why_not);
  /// Collective over the group's members.
  std::unique_ptr<GroupImpl> (*create)(const GroupSpec& spec, Deadline deadline);
  /// Takes memory of devices where it lies, and leaves the host's to the first: "auto" asks it
  /// before all others, and its usable() answers the same on all ranks.
  bool for_devices = false;
};

/// Best first; "auto" takes the first usable one of those for devices, else of all. Every one
/// implements the whole of GroupImpl; what a call of it cannot do (a type, a size) is
/// kInvalidArgument before anything is sent.
std::span<const Backend> backends();

/// Adds one at the end of the table; for other layers, before main() (its result serves to call it
/// from a static initializer).
bool register_backend(const Backend& backend);

/// Tells of each new group's other ranks which accelerator this one computes with: `namer`
/// gives GroupSpec::devices' text for it. Before main().
bool register_devices(std::string (*namer)(const World& world));
/// As was registered; else empty.
std::string name_device(const World& world);

/// One line of `lockstep doctor backends`.
struct BackendReport {
  std::string name;
  std::string summary;
  bool built_in = false;
  bool usable = false;  ///< By this process, as it was started.
  std::string why_not;  ///< Why one of them is false; empty when both are true.
};
std::vector<BackendReport> report_backends();

/// The back end for `name`, or for "auto" the first usable one (said at debug level).
/// Errors: kInvalidArgument (unknown: names the nearest; or named, but not usable: says why),
/// kUnavailable (none can serve this group).
const Backend& choose_backend(const std::string& name, const GroupSpec& spec);

/// The native back end: our own transports. All ranks on one host: shared memory; else shared
/// memory within hosts and TCP between them. Collective. Errors: as ProcessGroup::create.
std::unique_ptr<GroupImpl> make_native_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
