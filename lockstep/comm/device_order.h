#pragma once
// The order between a collective and the work of a device.

#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// What a collective does before and after its work, for tensors of devices:
/// lockstep/collectives.h makes it.
class DeviceOrder {
 public:
  virtual ~DeviceOrder() = default;
  /// The next two: in the thread that runs the collective. before() returns when host memory has
  /// its values; after() follows a collective that succeeded.
  virtual void before(Deadline deadline) = 0;
  virtual void after() = 0;
  /// In the thread that waits: the later work of its current stream sees the result.
  virtual void join() = 0;
};

}  // namespace lockstep::inline internal
