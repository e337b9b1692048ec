#pragma once
// The part of Ascend's published C interfaces that the back end "hccl" uses: CANN's runtime (acl)
// and its collectives (HCCL). Declared here, so that the build needs no CANN; the numbers are those
// of CANN's headers and are the same in all its versions.

#include <cstdint>

namespace lockstep::hccl {

using Comm = void*;    // HcclComm
using Stream = void*;  // aclrtStream

struct RootInfo {  // HcclRootInfo
  char internal[4108];
};

enum DataType : int { kInt8 = 0, kInt32 = 2, kFloat16 = 3, kFloat32 = 4, kBFloat16 = 11 };
enum Reduction : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3 };

inline constexpr int kSuccess = 0;
inline constexpr int kAlreadyInitialized = 100002;  // of aclInit()
inline constexpr int kSyncTimeout = 107020;         // of aclrtSynchronizeStreamWithTimeout()

/// The functions, by their published names. They return kSuccess or an error's number.
struct Functions {
  // CANN's runtime. A device is current in a thread.
  int (*aclInit)(const char* config_path);
  int (*aclrtGetDeviceCount)(uint32_t* count);
  int (*aclrtSetDevice)(int32_t device);
  const char* (*aclrtGetSocName)();
  const char* (*aclGetRecentErrMsg)();
  int (*aclrtCreateStream)(Stream* stream);
  int (*aclrtDestroyStream)(Stream stream);
  int (*aclrtSynchronizeStreamWithTimeout)(Stream stream, int32_t milliseconds);
  int (*aclrtStreamAbort)(Stream stream);  // of newer versions; else null

  // HCCL. Operations are queued on the stream; counts are elements.
  int (*HcclGetRootInfo)(RootInfo* root);
  int (*HcclCommInitRootInfo)(uint32_t size, const RootInfo* root, uint32_t rank, Comm* comm);
  int (*HcclCommDestroy)(Comm comm);
  int (*HcclGetCommAsyncError)(Comm comm, int* error);
  const char* (*HcclGetErrorString)(int error);
  int (*HcclAllReduce)(void* in, void* out, uint64_t count, int type, int op, Comm comm,
                       Stream stream);
  int (*HcclBroadcast)(void* data, uint64_t count, int type, uint32_t root, Comm comm,
                       Stream stream);
  int (*HcclAllGather)(void* in, void* out, uint64_t count, int type, Comm comm, Stream stream);
  int (*HcclReduceScatter)(void* in, void* out, uint64_t count, int type, int op, Comm comm,
                           Stream stream);
  int (*HcclSend)(void* data, uint64_t count, int type, uint32_t to, Comm comm, Stream stream);
  int (*HcclRecv)(void* data, uint64_t count, int type, uint32_t from, Comm comm, Stream stream);
};

}  // namespace lockstep::hccl
