#pragma once
// How both ends copy a large letter at once.
//
// The kernel's way into another process's memory (process_vm_readv) pins and copies page by page
// and takes three times as long as a memcpy. Two copies by way of memory that stays in the caches
// take about as long as one, as long as both ends run. So the sender copies the letter from the
// front on into a lane, a few slots of shared memory, and the receiver copies it out of them. Where
// nothing comes, for the sender's core does something else, the receiver does not wait: it reads
// chunks out of the sender's memory itself, from the back on.
//
//   chunk   0 1 2 3 4 5 | 6 7 8 9 | 10 11 12 13
//           the sender  | nobody's| the receiver
//               front --^         ^-- back
//
// One word says who copies what: the sender moves `front`, the receiver `back`, each by compare and
// swap, until they meet. Chunks come out of the lane in the order of their numbers. A chunk that
// the sender has begun and does not finish, since it stands still, the receiver reads as well.
// Where the kernel forbids it to read, it moves `back` up again, and the lane carries the rest.
//
// Nobody writes to memory of another process: not to a recv that is over, nor to a process that has
// got the number of one that ended. The receiver reads by such a number, and uses what it has read
// only if the sender is alive afterwards, so that the number was its own all the time.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lockstep::shm {

/// Lies in shared memory, zero at first. The counts are of the letter under way.
struct Lane {
  /// All slots together stay in the L2 cache of a core, with room for what is copied.
  static constexpr int64_t kSlotBytes = 128 << 10;
  static constexpr uint32_t kSlots = 4;

  alignas(64) std::atomic<uint64_t> ends;     ///< As packed().
  alignas(64) std::atomic<uint32_t> filled;   ///< Chunks that the sender has put into slots.
  alignas(64) std::atomic<uint32_t> emptied;  ///< Of those, what the receiver has taken out.
};

/// How a letter is cut: chunks of the size of a slot, the last one what is left.
struct Cut {
  int64_t bytes;

  uint32_t chunks() const {
    return static_cast<uint32_t>((bytes + Lane::kSlotBytes - 1) / Lane::kSlotBytes);
  }
  int64_t offset(uint32_t chunk) const { return int64_t{chunk} * Lane::kSlotBytes; }
  size_t size(uint32_t chunk) const;
};

/// Chunks [0, front) are the sender's to copy, [back, all) the receiver's.
struct Ends {
  uint32_t front = 0;
  uint32_t back = 0;

  static Ends unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
  }
  uint64_t packed() const { return uint64_t{back} << 32 | front; }
  /// What they are after one more chunk is the sender's, or the receiver's; none is left: empty.
  std::optional<Ends> one_to_the_sender() const;
  std::optional<Ends> one_to_the_receiver() const;
  /// After the receiver has given back what it took last.
  Ends one_returned() const { return {front, back + 1}; }
  bool operator==(const Ends&) const = default;
};

/// What the receiver does next.
enum class LaneStep {
  kDone,
  kTake,       ///< A chunk out of the lane.
  kReadBack,   ///< The last chunk that is nobody's, out of the sender's memory.
  kReadBegun,  ///< The next chunk of the lane, which the sender has begun, out of its memory.
  kWait,       ///< For the sender to fill a slot.
};
/// `taken`: how many chunks of the lane the receiver has.
LaneStep next_step(Ends ends, uint32_t filled, uint32_t taken, bool may_read);

/// The sender's end. One thread.
class LaneSender {
 public:
  LaneSender(Lane& lane, std::byte* slots, const void* data, int64_t bytes)
      : lane_(lane), slots_(slots), data_(static_cast<const std::byte*>(data)), cut_{bytes} {}

  /// Before the letter is offered.
  void open();
  /// Has it a chunk to copy, and a slot for it?
  bool can_fill() const;
  /// Copies a chunk, after which the receiver is to be woken. False: see can_fill().
  bool fill();

 private:
  Lane& lane_;
  std::byte* const slots_;
  const std::byte* const data_;
  const Cut cut_;
  uint32_t filled_ = 0;
};

/// The receiver's end, for a letter that it has claimed. One thread.
class LaneReceiver {
 public:
  /// Where the sender has the letter.
  struct Origin {
    pid_t pid;
    uint64_t address;
  };

  LaneReceiver(Lane& lane, const std::byte* slots, const Origin& origin, std::byte* to,
               int64_t bytes)
      : lane_(lane), slots_(slots), origin_(origin), to_(to), cut_{bytes} {}

  LaneStep next(bool may_read) const;
  /// A slot is filled: kTake is next.
  bool arrived() const { return lane_.filled.load() > taken_; }
  /// kTake; afterwards the sender is to be woken.
  void take();
  enum class Read {
    kDone,
    kNothing,  ///< The sender was faster: no chunk is nobody's any more.
    kRefused,  ///< By the kernel. The chunk is the sender's again, which is to be woken.
  };
  /// kReadBack or kReadBegun.
  Read read(LaneStep step);

 private:
  bool read_chunk(uint32_t chunk);

  Lane& lane_;
  const std::byte* const slots_;
  const Origin origin_;
  std::byte* const to_;
  const Cut cut_;
  uint32_t taken_ = 0;
};

}  // namespace lockstep::shm
