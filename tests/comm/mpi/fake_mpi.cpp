#include "tests/comm/mpi/fake_mpi.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/types.h"

namespace {

struct Request {
  LockstepMpiCall call;
  bool is_held;
  std::string before;  // content of its memory at the start
};

std::mutex mutex;
std::vector<std::unique_ptr<Request>> held_requests;
int a_communicator;

std::string memory_of(const LockstepMpiCall& call) {
  const auto bytes =
      static_cast<size_t>(call.count) *
      static_cast<size_t>(lockstep::size_of(static_cast<lockstep::DType>(call.dtype)));
  std::string text;
  if (call.in != nullptr) text.append(static_cast<const char*>(call.in), bytes);
  if (call.out != nullptr) text.append(static_cast<const char*>(call.out), bytes);
  for (const int* const list :
       {call.in_counts, call.in_offsets, call.out_counts, call.out_offsets}) {
    if (list != nullptr) text.append(reinterpret_cast<const char*>(list), sizeof *list);
  }
  return text;
}

int pending() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(held_requests.size());
}

bool memory_is_there() {
  const std::lock_guard lock(mutex);
  for (const auto& request : held_requests) {
    if (memory_of(request->call) != request->before) return false;
  }
  return true;
}

void deliver() {
  const std::lock_guard lock(mutex);
  for (const auto& request : held_requests) {
    const auto& call = request->call;
    const auto each = lockstep::size_of(static_cast<lockstep::DType>(call.dtype));
    if (call.out != nullptr)
      std::memset(call.out, 0x5a, static_cast<size_t>(call.count) * static_cast<size_t>(each));
  }
  held_requests.clear();
}

FakeMpi fake{.pending = pending, .memory_is_there = memory_is_there, .deliver = deliver};

const char* library() {
  return "a fake";
}
int init(LockstepMpiCombine) {
  return 0;
}
int world_rank() {  // of threads, in any order
  static std::atomic<int> next = 0;
  return fake.numbers_all_zero ? 0 : next++;
}
int create(const int*, int, int, void** communicator) {
  *communicator = &a_communicator;
  return 0;
}
int start(void*, const LockstepMpiCall* call, void** request) {
  ++fake.starts;
  const bool is_held = call->kind == fake.held;
  auto made = std::make_unique<Request>(Request{*call, is_held, is_held ? memory_of(*call) : ""});
  *request = made.get();
  const std::lock_guard lock(mutex);
  if (is_held) held_requests.push_back(std::move(made));
  static_cast<void>(made.release());  // test() deletes it
  return 0;
}
int test(void* request, int* done) {
  auto* const made = static_cast<Request*>(request);
  *done = made->is_held ? 0 : 1;
  if (*done != 0) delete made;
  return 0;
}
void abandon(int64_t milliseconds) {
  fake.abandoned_ms = milliseconds;
}
void text(int, char* to, int) {
  *to = '\0';
}
int is_truncation(int) {
  return 0;
}

constexpr LockstepMpiApi kApi = {
    LOCKSTEP_MPI_SHIM_VERSION,
    library,
    init,
    world_rank,
    create,
    start,
    test,
    abandon,
    text,
    is_truncation,
};

}  // namespace

const LockstepMpiApi* lockstep_mpi_api() {
  return &kApi;
}

FakeMpi* lockstep_fake_mpi() {
  return &fake;
}
