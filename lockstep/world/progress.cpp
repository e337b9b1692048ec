#include "lockstep/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/deadline.h"
#include "lockstep/world/step_memory.h"

namespace lockstep {
namespace {

/// An exponential mean: the latest steps count most.
double mean_step(double before, double seconds) {
  constexpr double kNewest = 0.2;
  return before == 0 ? seconds : before + kNewest * (seconds - before);
}

/// Marks a slot as being written. False while another thread writes it: a report is lost then, but
/// none is mixed with another.
class Writing {
 public:
  explicit Writing(StepSlot* slot)
      : slot_(slot), version_(slot->version.load(std::memory_order_relaxed)) {
    begun_ = version_ % 2 == 0 && slot_->version.compare_exchange_strong(version_, version_ + 1);
  }
  ~Writing() {
    if (begun_) slot_->version.store(version_ + 2, std::memory_order_seq_cst);
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  explicit operator bool() const { return begun_; }

 private:
  StepSlot* slot_;
  uint32_t version_;
  bool begun_ = false;
};

/// When the work of this process began that the slot shows; 0: it shows none of this process. What
/// else the slot shows is of a process that ended within its work, such as a killed program that
/// ran in this worker before.
std::atomic<int64_t> own_work_ns = 0;

/// While the slot is marked.
bool shows_own_work(const StepSlot& slot) {
  return slot.work[0] != 0 && slot.work_ns == own_work_ns;
}

/// Ends the work that began at `begun_ns`, if the slot still shows it. False while another thread
/// writes the slot.
bool try_end_work(StepSlot* slot, int64_t begun_ns) {
  const Writing writing(slot);
  if (!writing) return false;
  if (slot->work[0] == 0 || slot->work_ns != begun_ns) return true;  // such as a parent's, forked
  slot->work[0] = 0;
  own_work_ns = 0;
  // A step that another thread reported meanwhile has taken its part of the time already.
  if (slot->stepped_ns != 0)
    slot->stepped_ns += monotonic_ns() - std::max(begun_ns, slot->stepped_ns);
  return true;
}

/// While the slot is marked.
void fill(StepSlot* slot, const StepFigures& figures) {
  const int64_t now = monotonic_ns();
  if (slot->stepped_ns != 0 && figures.step > slot->step) {
    const double seconds = static_cast<double>(now - slot->stepped_ns) / 1e9;
    slot->step_seconds =
        mean_step(slot->step_seconds, seconds / static_cast<double>(figures.step - slot->step));
  }
  if (slot->begun_ns == 0 || figures.step < slot->step) {  // it goes on from an earlier step
    slot->begun_ns = now;
    slot->begun_step = figures.step;
  }
  slot->step = figures.step;
  slot->total = figures.total;
  slot->loss = figures.loss;
  slot->seconds_left = figures.seconds_left;
  slot->stepped_ns = now;
  slot->epoch = figures.epoch;
  slot->num_epochs = figures.num_epochs;
  slot->note[figures.note.copy(slot->note, sizeof slot->note - 1)] = 0;
  slot->mark.store(kStepped, std::memory_order_relaxed);
}

/// The figures of the next step, if all but the step stay.
StepFigures next_of(const StepSlot& slot, const std::string& note) {
  if (slot.stepped_ns == 0) return {.step = 1};
  return {slot.step + 1, slot.total, slot.loss,      slot.seconds_left,
          note,          slot.epoch, slot.num_epochs};
}

}  // namespace

void expect_steps() {
  StepSlot* slot = slot_for_reports();
  if (slot == nullptr) return;
  slot->mark.store(kExpectsSteps, std::memory_order_relaxed);
  const Writing writing(slot);
  if (!writing) return;
  slot->begun_ns = 0;
  if (!shows_own_work(*slot)) slot->work[0] = 0;
}

void report_step() {
  StepSlot* slot = slot_for_reports();
  if (slot == nullptr) return;
  const Writing writing(slot);
  if (!writing) return;
  const std::string note = slot->note;
  fill(slot, next_of(*slot, note));
}

void report_step(const StepFigures& figures) {
  StepSlot* slot = slot_for_reports();
  if (slot == nullptr) return;
  const Writing writing(slot);
  if (writing) fill(slot, figures);
}

bool job_goes_on() {
  const StepSlot* slot = slot_of_agent();
  return slot != nullptr && slot->goes_on.load() != 0;
}

ReportedWork::ReportedWork(std::string_view what) {
  StepSlot* slot = slot_for_reports();
  if (slot == nullptr || what.empty()) return;
  const Writing writing(slot);
  if (!writing || shows_own_work(*slot)) return;
  begun_ns_ = slot->work_ns = monotonic_ns();
  own_work_ns = begun_ns_;
  slot->work[what.copy(slot->work, sizeof slot->work - 1)] = 0;
}

ReportedWork::~ReportedWork() {
  StepSlot* slot = begun_ns_ == 0 ? nullptr : slot_for_reports();
  if (slot == nullptr) return;
  // Its end must not get lost. Another thread writes for less than a microsecond, so the limit is
  // for one that no longer runs: of the parent of a forked child.
  const auto limit = Deadline::after(std::chrono::seconds(1));
  while (!try_end_work(slot, begun_ns_) && !limit.passed()) std::this_thread::yield();
}

}  // namespace lockstep
