#pragma once
// The back end "hccl": collectives on the tensors of Ascend NPUs by HCCL, and native for host
// memory (device/device_group.h). "auto" selects it if every rank has an NPU of its own.
//
// CANN's libraries are loaded at run time; the build needs nothing of Ascend's. libtorch needs a
// device for NPUs, which torch_npu's library brings (link it, or dlopen it first): its tensors are
// of the device type PrivateUse1. The device of a rank is World::device. Differences to native:
// sums have HCCL's order, and some types are not reduced (hccl_engine.h). Either all ranks' tensors
// are on their NPUs, or none. A rank that dies in the middle of a collective is not named: the
// others get HCCL's error, or their deadline.
//
// It has run on no NPU: none was at hand. Its tests run on a stand-in library that follows the
// published contract (tests/tensor/hccl).

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

std::unique_ptr<GroupImpl> make_hccl_group(const GroupSpec& spec, Deadline deadline);

/// True if CANN's libraries can be loaded, and libtorch has NPUs. If not, `why_not` receives the
/// reason.
bool hccl_is_loadable(std::string* why_not);

/// "npu:1 HOST/3": the text for GroupSpec::devices, with the NPU's number on the host; empty if
/// this rank has none.
std::string name_npu(const World& world);
/// The beginning of such a text, which torch_npu determines: "npu:".
std::string npu_prefix();

}  // namespace lockstep::inline internal
