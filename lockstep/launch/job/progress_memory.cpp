#include "lockstep/launch/job/progress_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "lockstep/base/clock.h"
#include "lockstep/base/sealed_memory.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr off_t kMostWorkers = 1 << 16;

/// Bytes, since a slot may be written at any time.
using SlotBytes = std::array<std::byte, sizeof(StepSlot)>;

template <class T, class Bytes>
T field(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <size_t size>
std::string text_field(const SlotBytes& slot, size_t offset) {
  const auto bytes = field<std::array<char, size>>(slot, offset);
  std::string text(bytes.data(), ::strnlen(bytes.data(), bytes.size()));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';  // it is printed on a terminal
  }
  return text;
}

/// The slots from `begin` on.
std::vector<SlotBytes> read_slots(int memory, off_t begin) {
  struct stat status {};
  if (::fstat(memory, &status) != 0) return {};
  const auto room = (status.st_size - begin) / static_cast<off_t>(sizeof(SlotBytes));
  std::vector<SlotBytes> slots(static_cast<size_t>(std::clamp<off_t>(room, 0, kMostWorkers)));
  const size_t bytes = slots.size() * sizeof(SlotBytes);
  const ssize_t got = ::pread(memory, slots.data(), bytes, begin);
  if (got != static_cast<ssize_t>(bytes)) slots.clear();
  return slots;
}

uint32_t version_of(const SlotBytes& slot) {
  return field<uint32_t>(slot, offsetof(StepSlot, version));
}

RankSteps steps_of(const SlotBytes& slot) {
  RankSteps steps;
  steps.mark = field<char>(slot, offsetof(StepSlot, mark));
  steps.step = field<int64_t>(slot, offsetof(StepSlot, step));
  steps.total = field<int64_t>(slot, offsetof(StepSlot, total));
  steps.loss = field<double>(slot, offsetof(StepSlot, loss));
  steps.seconds_left = field<double>(slot, offsetof(StepSlot, seconds_left));
  steps.step_seconds = field<double>(slot, offsetof(StepSlot, step_seconds));
  steps.stepped_ns = field<int64_t>(slot, offsetof(StepSlot, stepped_ns));
  steps.epoch = field<int32_t>(slot, offsetof(StepSlot, epoch));
  steps.num_epochs = field<int32_t>(slot, offsetof(StepSlot, num_epochs));
  steps.note = text_field<sizeof(StepSlot::note)>(slot, offsetof(StepSlot, note));
  steps.work_ns = field<int64_t>(slot, offsetof(StepSlot, work_ns));
  steps.work = text_field<sizeof(StepSlot::work)>(slot, offsetof(StepSlot, work));
  steps.begun_ns = field<int64_t>(slot, offsetof(StepSlot, begun_ns));
  steps.begun_step = field<int64_t>(slot, offsetof(StepSlot, begun_step));
  return steps;
}

/// Twice the same even version: the slot did not change in between.
bool is_whole(const SlotBytes& slot, const SlotBytes& later) {
  return version_of(slot) == version_of(later) && version_of(slot) % 2 == 0;
}

/// Whether the numbers can be subtracted and shown.
bool is_possible(const RankSteps& steps) {
  constexpr int64_t kMost = int64_t{1} << 61;
  constexpr double kMostSeconds = 1e9;
  const auto numbers = {steps.step,    steps.total,    steps.stepped_ns,
                        steps.work_ns, steps.begun_ns, steps.begun_step};
  return std::abs(steps.step_seconds) <= kMostSeconds &&  // false for NaN
         std::all_of(numbers.begin(), numbers.end(),
                     [](int64_t number) { return -kMost <= number && number <= kMost; });
}

std::vector<RankSteps> read_ranks(int memory, off_t begin = 0) {
  constexpr int kTries = 20;
  std::vector<RankSteps> ranks;
  std::vector<bool> known;
  for (int i = 0; i < kTries; ++i) {
    const auto slots = read_slots(memory, begin);
    const auto later = read_slots(memory, begin);
    known.resize(slots.size());
    for (size_t rank = 0; rank < slots.size() && later.size() == slots.size(); ++rank) {
      if (known[rank] || !is_whole(slots[rank], later[rank])) continue;
      known[rank] = true;
      ranks.push_back(steps_of(slots[rank]));
      ranks.back().local_rank = static_cast<int>(rank);
    }
    if (std::find(known.begin(), known.end(), false) == known.end()) break;
  }
  std::erase_if(ranks, [](const RankSteps& rank) { return rank.mark == 0 || !is_possible(rank); });
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.local_rank < b.local_rank; });
  return ranks;
}

/// Seconds to the end; -1: unknown. The mean time of the last steps alone would leave out what
/// comes between epochs. It serves until there is a second step.
double left_of(const RankSteps& rank, int64_t now_ns) {
  if (rank.seconds_left >= 0 || rank.total <= 0) return rank.seconds_left;
  const int64_t left = std::max<int64_t>(rank.total - rank.step, 0);
  const int64_t until = rank.work.empty() ? rank.stepped_ns : now_ns;
  const auto estimate = estimate_left(rank.begun_ns == 0 ? 0 : rank.step - rank.begun_step, left,
                                      std::chrono::nanoseconds(until - rank.begun_ns));
  if (estimate) return static_cast<double>(estimate->count());
  return rank.step_seconds > 0 ? static_cast<double>(left) * rank.step_seconds : -1;
}

}  // namespace

ProgressMemory::ProgressMemory(int workers)
    : memory_(make_sealed_memory(kProgressMemoryName,
                                 static_cast<size_t>(workers) * sizeof(StepSlot))) {
  if (!memory_) throw io_error("memfd_create");
}

std::string ProgressMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), memory_.get());
}

Steps ProgressMemory::steps() const {
  bool expected = false;
  for (const SlotBytes& slot : read_slots(memory_.get(), 0)) {
    const char mark = field<char>(slot, offsetof(StepSlot, mark));
    if (mark == kStepped) return Steps::kSome;
    expected = expected || mark == kExpectsSteps;
  }
  return expected ? Steps::kNone : Steps::kUnknown;
}

void ProgressMemory::announce_job_goes_on() const {
  struct stat status {};
  if (::fstat(memory_.get(), &status) != 0) return;
  const char yes = 1;
  const auto size = static_cast<off_t>(sizeof(StepSlot));
  for (off_t slot = 0; slot + size <= status.st_size; slot += size) {
    const auto place = slot + static_cast<off_t>(offsetof(StepSlot, goes_on));
    if (::pwrite(memory_.get(), &yes, 1, place) != 1) return;
  }
}

std::vector<RankSteps> read_progress_memory(const std::string& path) {
  const UniqueFd memory(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return memory ? read_ranks(memory.get()) : std::vector<RankSteps>();
}

std::optional<OwnReport> read_own_steps(int memory) {
  constexpr size_t kHead = offsetof(OwnSteps, slot);
  struct stat status {};
  std::array<std::byte, kHead> head;
  if (::fstat(memory, &status) != 0 || status.st_size != off_t{sizeof(OwnSteps)} ||
      ::pread(memory, head.data(), kHead, 0) != ssize_t{kHead} ||
      field<uint64_t>(head, offsetof(OwnSteps, magic)) != kOwnStepsMagic) {
    return std::nullopt;
  }
  const auto ranks = read_ranks(memory, kHead);
  if (ranks.empty()) return std::nullopt;
  return OwnReport{field<int32_t>(head, offsetof(OwnSteps, pid)),
                   field<uint64_t>(head, offsetof(OwnSteps, pid_space)), ranks.front()};
}

std::optional<JobProgress> progress_of(const std::vector<RankSteps>& ranks, int64_t now_ns) {
  const auto first = std::find_if(ranks.begin(), ranks.end(),
                                  [](const RankSteps& rank) { return rank.mark == kStepped; });
  if (first == ranks.end()) return std::nullopt;
  JobProgress progress{first->step,         first->total, first->loss,  left_of(*first, now_ns),
                       first->step_seconds, first->note,  first->epoch, first->num_epochs};
  const double silent = static_cast<double>(now_ns - first->stepped_ns) / 1e9;
  if (silent > std::max(10.0, 5 * first->step_seconds)) {
    progress.note = fmt::format("no step for {:.0f} s", silent);
    const double at_work = static_cast<double>(now_ns - first->work_ns) / 1e9;
    if (!first->work.empty()) progress.note = fmt::format("{} for {:.0f} s", first->work, at_work);
  }
  return progress;
}

std::optional<JobProgress> progress_of(const std::vector<RankSteps>& ranks) {
  return progress_of(ranks, monotonic_ns());
}

}  // namespace lockstep::inline internal
