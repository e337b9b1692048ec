#pragma once
// The table of back ends: their abilities, and the choice of one for a group.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

struct Backend {
  std::string_view name;     ///< The value of GroupOptions::backend and --backend.
  std::string_view summary;  ///< One line for people.
  /// True if this program contains it. If not, `why_not` receives the reason.
  bool (*built_in)(std::string* why_not);
  /// True if it is built in and able to serve this group on this machine. If not, `why_not`
  /// receives the reason.
  bool (*usable)(const GroupSpec& spec, std::string* why_not);
  /// Collective over the group's members.
  std::unique_ptr<GroupImpl> (*create)(const GroupSpec& spec, Deadline deadline);
  /// Takes memory of devices in place, and leaves host memory to the first back end. "auto" tries
  /// it before all others. Its usable() returns the same on all ranks.
  bool for_devices = false;
  /// Adds the values of all ranks in one order, whatever their placement: virtual ranks need it.
  bool one_order = false;
};

/// Best first; "auto" takes the first usable one of those for devices, else the first usable one of
/// all. Each implements all of GroupImpl. A call that it cannot serve (a type, a size) fails with
/// kInvalidArgument before anything is sent.
std::span<const Backend> backends();

/// Backend::one_order of the back end named `name`, or of all that "auto" may take. False if there
/// is none of that name.
bool sums_in_one_order(const std::string& name);
/// The same of other back ends than those of backends().
bool sums_in_one_order(const std::string& name, std::span<const Backend> choices);

/// Adds one at the end of the table. For other layers, before main(): a static initializer can call
/// it for its result.
bool register_backend(const Backend& backend);

/// One line of `lockstep doctor backends`.
struct BackendReport {
  std::string name;
  std::string summary;
  bool built_in = false;
  bool usable = false;  ///< In this process, as it was started.
  std::string why_not;  ///< Why one of them is false; empty when both are true.
};
std::vector<BackendReport> report_backends();

/// The back end named `name`, or for "auto" the first usable one (logged at debug level). Errors:
/// kInvalidArgument (unknown: the message names the nearest; or named but not usable: it gives the
/// reason), kUnavailable (none can serve this group).
const Backend& choose_backend(const std::string& name, const GroupSpec& spec);

/// The native back end: our own transports. All ranks on one host: shared memory; else shared
/// memory within hosts and TCP between them. Collective. Errors: as ProcessGroup::create.
std::unique_ptr<GroupImpl> make_native_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::inline internal
