#include "lockstep/world/step_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/sealed_memory.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/world/assigned_world.h"

namespace lockstep::inline internal {
namespace {

/// The variable may be inherited from a past job, and its number reused by now.
bool is_progress_memory(const std::string& path) {
  std::array<char, 64> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size() - 1);
  return size > 0 &&
         std::string(target.data()).rfind(std::string("/memfd:") + kProgressMemoryName, 0) == 0;
}

/// If it cannot be mapped, the agent lacks this worker's progress: no reason to end a training.
StepSlot* map_slot_of_agent() {
  const std::string path = env_or("LOCKSTEP_STEPS", "");
  if (path.empty() || !is_progress_memory(path)) return nullptr;
  const UniqueFd memory(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!memory || ::fstat(memory.get(), &status) != 0) return nullptr;
  const int local_rank = std::atoi(env_or("LOCKSTEP_LOCAL_RANK", "0").c_str());
  const auto end = (static_cast<int64_t>(local_rank) + 1) * static_cast<int64_t>(sizeof(StepSlot));
  if (local_rank < 0 || end > status.st_size) return nullptr;
  void* slots = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                       MAP_SHARED, memory.get(), 0);
  return slots == MAP_FAILED ? nullptr : static_cast<StepSlot*>(slots) + local_rank;
}

struct Made {
  UniqueFd memory;
  OwnSteps* steps = nullptr;
};

/// Allocates nothing on the heap: it may run in the child of a process with threads.
Made make_own_steps() {
  Made made{make_sealed_memory(kOwnStepsName, sizeof(OwnSteps))};
  if (!made.memory) return {};
  void* place =
      ::mmap(nullptr, sizeof(OwnSteps), PROT_READ | PROT_WRITE, MAP_SHARED, made.memory.get(), 0);
  if (place == MAP_FAILED) return {};
  made.steps = new (place) OwnSteps;
  made.steps->pid_space = pid_space();
  made.steps->pid = ::getpid();
  made.steps->fork_generation = fork_generation();
  made.steps->magic.store(kOwnStepsMagic, std::memory_order_release);
  return made;
}

/// Null if no memory can be had: `lockstep ps` lacks the steps. A process tries once, because each
/// try costs system calls, and reports come at every step.
StepSlot* own_slot() {
  static std::atomic<OwnSteps*> own = nullptr;
  static std::atomic<uint64_t> failed = 0;  // 1 + the fork_generation() of the process; 0: no
  OwnSteps* known = own.load(std::memory_order_acquire);
  if (known != nullptr && known->fork_generation == fork_generation()) return &known->slot;
  const uint64_t this_process = uint64_t{fork_generation()} + 1;
  if (failed.load(std::memory_order_relaxed) == this_process) return nullptr;
  Made made = make_own_steps();
  if (made.steps == nullptr) {
    failed.store(this_process, std::memory_order_relaxed);
    return nullptr;
  }
  if (!own.compare_exchange_strong(known, made.steps)) {  // another thread was first
    ::munmap(made.steps, sizeof(OwnSteps));
    return &known->slot;
  }
  made.memory.release();  // open until the process ends
  return &made.steps->slot;
}

}  // namespace

StepSlot* slot_of_agent() {
  static StepSlot* const slot = map_slot_of_agent();
  return slot;
}

StepSlot* slot_for_reports() {
  const auto& thread = assigned_world();
  if (thread && thread->rank != 0) return nullptr;
  StepSlot* const given = slot_of_agent();
  return given != nullptr ? given : own_slot();
}

}  // namespace lockstep::inline internal
