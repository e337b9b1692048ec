#include "lockstep/progress.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/world/step_slot.h"

namespace lockstep {
namespace {

/// The variable may be inherited from a past job, and its number reused by now.
bool is_step_board(const std::string& path) {
  std::array<char, 64> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size() - 1);
  return size > 0 &&
         std::string(target.data()).rfind(std::string("/memfd:") + kStepBoardName, 0) == 0;
}

/// This worker's slot, mapped; null if there is none. If it cannot be mapped, the agent lacks its
/// progress: no reason to end a training.
StepSlot* map_own_slot() {
  const std::string path = env_or("LOCKSTEP_STEPS", "");
  if (path.empty() || !is_step_board(path)) return nullptr;
  const UniqueFd board(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!board || ::fstat(board.get(), &status) != 0) return nullptr;
  const int local_rank = std::atoi(env_or("LOCKSTEP_LOCAL_RANK", "0").c_str());
  const auto end = (static_cast<int64_t>(local_rank) + 1) * static_cast<int64_t>(sizeof(StepSlot));
  if (local_rank < 0 || end > status.st_size) return nullptr;
  void* slots = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                       MAP_SHARED, board.get(), 0);
  return slots == MAP_FAILED ? nullptr : static_cast<StepSlot*>(slots) + local_rank;
}

StepSlot* own_slot() {
  static StepSlot* const slot = map_own_slot();
  return slot;
}

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// An exponential mean: the latest steps count most.
double mean_step(double before, double seconds) {
  constexpr double kNewest = 0.2;
  return before == 0 ? seconds : before + kNewest * (seconds - before);
}

/// Marks a slot as being written.
class Writing {
 public:
  explicit Writing(StepSlot* slot)
      : slot_(slot), version_(slot->version.load(std::memory_order_relaxed)) {
    slot_->version.store(version_ + 1, std::memory_order_seq_cst);
  }
  ~Writing() { slot_->version.store(version_ + 2, std::memory_order_seq_cst); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  StepSlot* slot_;
  uint32_t version_;
};

void fill(StepSlot* slot, const StepFigures& figures) {
  const int64_t now = now_ns();
  const bool goes_on = slot->stepped_ns != 0 && figures.step > slot->step;
  const Writing writing(slot);
  if (goes_on) {
    const double seconds = static_cast<double>(now - slot->stepped_ns) / 1e9;
    slot->step_seconds =
        mean_step(slot->step_seconds, seconds / static_cast<double>(figures.step - slot->step));
  }
  slot->step = figures.step;
  slot->total = figures.total;
  slot->loss = figures.loss;
  slot->seconds_left = figures.seconds_left;
  slot->stepped_ns = now;
  slot->epoch = figures.epoch;
  slot->num_epochs = figures.num_epochs;
  slot->note[figures.note.copy(slot->note, sizeof slot->note - 1)] = 0;
}

void write(StepSlot* slot, const StepFigures& figures) {
  fill(slot, figures);
  slot->mark.store(kStepped, std::memory_order_relaxed);
}

}  // namespace

void expect_steps() {
  if (StepSlot* slot = own_slot()) slot->mark.store(kExpectsSteps, std::memory_order_relaxed);
}

void report_step() {
  StepSlot* slot = own_slot();
  if (slot == nullptr) return;
  if (slot->stepped_ns == 0) return write(slot, {.step = 1});
  const std::string note = slot->note;
  write(slot, {slot->step + 1, slot->total, slot->loss, slot->seconds_left, note, slot->epoch,
               slot->num_epochs});
}

void report_step(const StepFigures& figures) {
  if (StepSlot* slot = own_slot()) write(slot, figures);
}

bool job_goes_on() {
  const StepSlot* slot = own_slot();
  return slot != nullptr && slot->goes_on.load() != 0;
}

ReportedWork::ReportedWork(std::string_view what) {
  StepSlot* slot = own_slot();
  if (slot == nullptr) return;
  const Writing writing(slot);
  slot->work_ns = now_ns();
  slot->work[what.copy(slot->work, sizeof slot->work - 1)] = 0;
}

ReportedWork::~ReportedWork() {
  StepSlot* slot = own_slot();
  if (slot == nullptr) return;
  const Writing writing(slot);
  slot->work[0] = 0;
  if (slot->stepped_ns != 0) slot->stepped_ns += now_ns() - slot->work_ns;
}

}  // namespace lockstep
