#pragma once
// A stand-in for CANN's libraries, in which a device's memory is the host's: every function of
// lockstep/tensor/hccl/interface.h by its published contract, between threads and processes.

#include <atomic>

struct FakeHccl {
  std::atomic<int> devices = 4;
  std::atomic<const char*> soc = "Ascend910A";
  /// Operations stay in their streams.
  std::atomic<bool> held = false;
  /// What HcclGetCommAsyncError() reports; operations then fail.
  std::atomic<int> async_error = 0;
  std::atomic<int> root_error = 0;  ///< Of HcclGetRootInfo().
  /// Pages of the operations' memory are opened and closed around each access, as those of the
  /// guarded device are.
  std::atomic<bool> opens_pages = false;
  std::atomic<int> operations = 0;
  std::atomic<int> aborted_streams = 0;
  std::atomic<int> communicators = 0;  ///< That are not destroyed.
};

extern "C" {
/// The library's export beside CANN's.
FakeHccl* lockstep_fake_hccl();
}
