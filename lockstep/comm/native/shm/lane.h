#pragma once
// The copy of a large message by both ends at once.
//
// The kernel's access to another process's memory (process_vm_readv) pins and copies page by page
// and takes three times as long as a memcpy. Two copies through memory that stays in the caches
// take about as long as one, as long as both ends run. So the sender copies the message from its
// front into a lane, a few slots of shared memory, from which the receiver copies it. If nothing
// arrives because the sender's core does other work, the receiver does not wait. It reads chunks
// from the sender's memory itself, starting at the back.
//
//   chunk   0 1 2 3 4 5 | 6 7 8 9 | 10 11 12 13
//           the sender  | nobody's| the receiver
//               front --^         ^-- back
//
// One word divides the chunks: the sender moves `front`, the receiver `back`, each by compare and
// swap, until they meet. Chunks come out of the lane in the order of their numbers. If the sender
// has begun a chunk and stands still, the receiver reads that chunk as well. If the kernel forbids
// it to read, it moves `back` up again, and the lane carries the rest.
//
// No process writes to another's memory: neither to a recv that has ended, nor to a process that
// has the pid of one that ended. The receiver reads by pid, and uses the data only if the sender is
// alive afterwards: so the pid was the sender's all the time.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lockstep::shm {

/// Lies in shared memory, zero at first. The counts belong to the message in progress.
struct Lane {
  /// All slots together stay in the L2 cache of a core, with room for the copied data.
  static constexpr int64_t kSlotBytes = 128 << 10;
  static constexpr uint32_t kSlots = 4;

  alignas(64) std::atomic<uint64_t> ends;     ///< The value of packed().
  alignas(64) std::atomic<uint32_t> filled;   ///< Chunks that the sender has put into slots.
  alignas(64) std::atomic<uint32_t> emptied;  ///< Of these, chunks that the receiver has taken out.
};

/// The division of a message into chunks of the size of a slot; the last one is the rest.
struct LaneChunks {
  int64_t bytes;

  uint32_t count() const {
    return static_cast<uint32_t>((bytes + Lane::kSlotBytes - 1) / Lane::kSlotBytes);
  }
  int64_t offset(uint32_t chunk) const { return int64_t{chunk} * Lane::kSlotBytes; }
  size_t size(uint32_t chunk) const;
};

/// The sender copies chunks [0, front), the receiver [back, all).
struct Ends {
  uint32_t front = 0;
  uint32_t back = 0;

  static Ends unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
  }
  uint64_t packed() const { return uint64_t{back} << 32 | front; }
  /// The ends after one more chunk goes to the sender, or to the receiver; empty: none is left.
  std::optional<Ends> one_to_the_sender() const;
  std::optional<Ends> one_to_the_receiver() const;
  /// The ends after the receiver has returned its last chunk.
  Ends one_returned() const { return {front, back + 1}; }
  bool operator==(const Ends&) const = default;
};

/// The receiver's next step.
enum class LaneStep {
  kDone,
  kTake,       ///< Take a chunk out of the lane.
  kReadBack,   ///< Read the last free chunk from the sender's memory.
  kReadBegun,  ///< Read the next chunk of the lane, which the sender has begun, from its memory.
  kWait,       ///< Wait for the sender to fill a slot.
};
/// `taken`: number of chunks of the lane that the receiver has.
LaneStep next_step(Ends ends, uint32_t filled, uint32_t taken, bool may_read);

/// The sender's end. One thread.
class LaneSender {
 public:
  LaneSender(Lane& lane, std::byte* slots, const void* data, int64_t bytes)
      : lane_(lane), slots_(slots), data_(static_cast<const std::byte*>(data)), chunks_{bytes} {}

  /// Before the message is offered.
  void open();
  /// True if there is a chunk to copy, and a slot for it.
  bool can_fill() const;
  /// Copies a chunk; the receiver must then be woken. False: see can_fill().
  bool fill();

 private:
  Lane& lane_;
  std::byte* const slots_;
  const std::byte* const data_;
  const LaneChunks chunks_;
  uint32_t filled_ = 0;
};

/// The receiver's end, for a message that the receiver has claimed. One thread.
class LaneReceiver {
 public:
  /// The place of the message in the sender.
  struct Origin {
    pid_t pid;
    uint64_t address;
  };

  LaneReceiver(Lane& lane, const std::byte* slots, const Origin& origin, std::byte* to,
               int64_t bytes)
      : lane_(lane), slots_(slots), origin_(origin), to_(to), chunks_{bytes} {}

  LaneStep next(bool may_read) const;
  /// True if a slot is filled: kTake is next.
  bool arrived() const { return lane_.filled.load() > taken_; }
  /// Executes kTake; the sender must then be woken.
  void take();
  enum class Read {
    kDone,
    kNothing,  ///< The sender was faster: no free chunk is left.
    kRefused,  ///< By the kernel. The chunk returns to the sender, which must be woken.
  };
  /// Executes kReadBack or kReadBegun.
  Read read(LaneStep step);

 private:
  bool read_chunk(uint32_t chunk);

  Lane& lane_;
  const std::byte* const slots_;
  const Origin origin_;
  std::byte* const to_;
  const LaneChunks chunks_;
  uint32_t taken_ = 0;
};

}  // namespace lockstep::shm
