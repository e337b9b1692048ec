#include "tests/tensor/hccl/fake_hccl.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "lockstep/base/unique_fd.h"
#include "lockstep/tensor/hccl/interface.h"
#include "tests/tensor/hccl/fake_hub.h"

namespace {

using lockstep::hccl::RootInfo;
using namespace lockstep::testing::hccl;

FakeHccl fake;
thread_local int current_device = -1;

constexpr int kNoDevice = 107002;    // no context in this thread
constexpr int kOpFailed = 507899;    // an operation of the stream
constexpr int kNotPresent = 107001;  // an invalid device

/// Runs queued operations in their order, in a thread.
class FakeStream {
 public:
  ~FakeStream() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    worker_.join();
  }
  void push(std::function<int()> operation) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(operation));
    wake_.notify_all();
  }
  int synchronize(int milliseconds) {
    std::unique_lock lock(mutex_);
    const auto idle = [&] { return queue_.empty(); };
    if (!wake_.wait_for(lock, std::chrono::milliseconds(milliseconds), idle)) {
      return lockstep::hccl::kSyncTimeout;
    }
    return error_ == 0 ? 0 : kOpFailed;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      const auto operation = queue_.front();
      lock.unlock();
      const int error = operation();
      lock.lock();
      if (error != 0) error_ = error;
      queue_.pop_front();
      wake_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<int()>> queue_;
  int error_ = 0;
  bool ending_ = false;
  std::thread worker_{[this] { work(); }};
};

struct FakeComm {
  lockstep::UniqueFd socket;
  int rank;
  int size;
  std::atomic<int> error = 0;
};

/// Opens the pages of a device's memory while it lives.
class Opened {
 public:
  Opened(void* data, uint64_t bytes) : data_(data), bytes_(bytes) {
    protect(PROT_READ | PROT_WRITE);
  }
  ~Opened() { protect(PROT_NONE); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  void protect(int how) const {
    if (!fake.opens_pages || bytes_ == 0) return;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<uintptr_t>(data_) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(data_) + bytes_;
    ::mprotect(reinterpret_cast<void*>(begin), end - begin, how);
  }
  void* data_;
  uint64_t bytes_;
};

/// What an operation reads and writes, in elements.
struct Sizes {
  uint64_t in;
  uint64_t out;
};

int run(FakeComm& comm, Request request, void* in, void* out, Sizes sizes) {
  while (fake.held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (fake.async_error != 0) return comm.error = fake.async_error.load();
  const uint64_t each = element_bytes(request.type);
  request.bytes = sizes.in * each;
  Bytes given(request.bytes), got;
  if (request.bytes > 0) {
    const Opened open(in, request.bytes);
    std::memcpy(given.data(), in, given.size());
  }
  const int error = ask_hub(comm.socket.get(), request, given.data(), got);
  if (error != 0) return comm.error = error;
  if (got.size() != sizes.out * each) return comm.error = kParameter;
  if (!got.empty()) {
    const Opened open(out, got.size());
    std::memcpy(out, got.data(), got.size());
  }
  return 0;
}

int queue(void* comm, void* stream, Request request, void* in, void* out, Sizes sizes) {
  if (current_device < 0) return kNoDevice;
  if (element_bytes(request.type) == 0 || request.count == 0) return kParameter;
  auto& made = *static_cast<FakeComm*>(comm);
  request.rank = made.rank;
  request.size = made.size;
  ++fake.operations;
  static_cast<FakeStream*>(stream)->push(
      [&made, request, in, out, sizes] { return run(made, request, in, out, sizes); });
  return 0;
}

/// The types that Ascend's guide names for reductions.
bool can_reduce(int type, int reduction) {
  if (reduction < 0 || reduction > 3) return false;
  if (type == 0 || type == 2 || type == 3 || type == 4) return true;
  const bool newer = std::string_view(fake.soc.load()).starts_with("Ascend910B");
  return type == 11 && newer && reduction != 1;
}

}  // namespace

extern "C" {

FakeHccl* lockstep_fake_hccl() {
  return &fake;
}

int aclInit(const char*) {
  return 0;
}
int aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(fake.devices);
  return 0;
}
int aclrtSetDevice(int32_t device) {
  if (device < 0 || device >= fake.devices) return kNotPresent;
  current_device = device;
  return 0;
}
const char* aclrtGetSocName() {
  return fake.soc;
}
const char* aclGetRecentErrMsg() {
  return nullptr;
}
int aclrtCreateStream(void** stream) {
  if (current_device < 0) return kNoDevice;
  *stream = new FakeStream;
  return 0;
}
int aclrtDestroyStream(void* stream) {
  delete static_cast<FakeStream*>(stream);
  return 0;
}
int aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds) {
  if (current_device < 0) return kNoDevice;
  return static_cast<FakeStream*>(stream)->synchronize(milliseconds);
}
int aclrtStreamAbort(void*) {
  ++fake.aborted_streams;
  return 0;
}

int HcclGetRootInfo(RootInfo* root) {
  if (fake.root_error != 0) return fake.root_error;
  const int port = start_hub();
  std::memcpy(root->internal, &port, sizeof port);
  return port > 0 ? 0 : kRemote;
}
int HcclCommInitRootInfo(uint32_t size, const RootInfo* root, uint32_t rank, void** comm) {
  if (current_device < 0) return kNoDevice;
  int port = 0;
  std::memcpy(&port, root->internal, sizeof port);
  auto* const made = new FakeComm{lockstep::UniqueFd(connect_to_hub(port)), static_cast<int>(rank),
                                  static_cast<int>(size)};
  *comm = made;
  ++fake.communicators;
  Request join{};
  join.operation = Operation::kJoin;
  join.rank = made->rank;
  join.size = made->size;
  Bytes nothing;
  return ask_hub(made->socket.get(), join, nullptr, nothing);
}
int HcclCommDestroy(void* comm) {
  --fake.communicators;
  delete static_cast<FakeComm*>(comm);
  return 0;
}
int HcclGetCommAsyncError(void* comm, int* error) {
  *error = static_cast<FakeComm*>(comm)->error;
  return 0;
}
const char* HcclGetErrorString(int error) {
  return error == kRemote ? "HCCL_E_REMOTE" : "HCCL_E_OTHER";
}
int HcclAllReduce(void* in, void* out, uint64_t count, int type, int op, void* comm, void* stream) {
  if (!can_reduce(type, op)) return kUnsupported;
  return queue(comm, stream,
               {.operation = Operation::kAllReduce, .type = type, .reduction = op, .count = count},
               in, out, {count, count});
}
int HcclBroadcast(void* data, uint64_t count, int type, uint32_t root, void* comm, void* stream) {
  const bool is_root = static_cast<FakeComm*>(comm)->rank == static_cast<int>(root);
  return queue(comm, stream,
               {.operation = Operation::kBroadcast,
                .type = type,
                .peer = static_cast<int>(root),
                .count = count},
               data, data, {is_root ? count : 0, count});
}
int HcclAllGather(void* in, void* out, uint64_t count, int type, void* comm, void* stream) {
  const auto size = static_cast<uint64_t>(static_cast<FakeComm*>(comm)->size);
  return queue(comm, stream, {.operation = Operation::kAllGather, .type = type, .count = count}, in,
               out, {count, count * size});
}
int HcclReduceScatter(void* in, void* out, uint64_t count, int type, int op, void* comm,
                      void* stream) {
  if (!can_reduce(type, op)) return kUnsupported;
  const auto size = static_cast<uint64_t>(static_cast<FakeComm*>(comm)->size);
  return queue(
      comm, stream,
      {.operation = Operation::kReduceScatter, .type = type, .reduction = op, .count = count}, in,
      out, {count * size, count});
}
int HcclSend(void* data, uint64_t count, int type, uint32_t to, void* comm, void* stream) {
  return queue(
      comm, stream,
      {.operation = Operation::kSend, .type = type, .peer = static_cast<int>(to), .count = count},
      data, nullptr, {count, 0});
}
int HcclRecv(void* data, uint64_t count, int type, uint32_t from, void* comm, void* stream) {
  return queue(
      comm, stream,
      {.operation = Operation::kRecv, .type = type, .peer = static_cast<int>(from), .count = count},
      nullptr, data, {0, count});
}
}
