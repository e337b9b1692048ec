#pragma once
// The layout of a group's control segment. One mapping per rank; all zero at first.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lockstep/base/shared_event.h"
#include "lockstep/comm/native/shm/cpu_set.h"
#include "lockstep/comm/native/shm/fd_server.h"
#include "lockstep/comm/native/shm/lane.h"
#include "lockstep/comm/op_header.h"

namespace lockstep::shm {

inline constexpr size_t kCacheLine = 64;
/// Messages up to this size are copied beside the header: one barrier instead of two, but every
/// rank reduces all of it.
inline constexpr int64_t kInlineBytes = 2 << 10;
/// Messages up to this size travel in the header's own cache line.
inline constexpr int64_t kTinyBytes = 16;
/// Memory that is not shared is copied in pieces of this size: two of every rank's stay in its L2
/// cache.
inline constexpr int64_t kChunkBytes = 256 << 10;
/// Bytes in transit from one rank to another in send and recv. Unused pages cost nothing.
inline constexpr int64_t kChannelBytes = 1 << 20;

/// The header that a rank posts when it enters an operation. `sequence` is written last and marks
/// the rest as valid.
struct alignas(kCacheLine) Post {
  std::atomic<uint64_t> sequence;
  OpHeader header;
  uint64_t segment;  ///< Number of the allocate() call whose memory contains `data`, 0 for none.
  int64_t offset;    ///< Of `data` in the rank's slot of it.
  std::byte tiny[kTinyBytes];
};
static_assert(sizeof(Post) == kCacheLine);

/// The slot of one rank. Only that rank writes to it, except for the mutex and `dead`.
struct alignas(kCacheLine) RankSlot {
  Post posts[2];  ///< By sequence & 1: no rank is more than one operation ahead of a reader.
  alignas(kCacheLine) std::atomic<uint64_t> barriers;  ///< sync() calls so far.
  std::atomic<uint64_t> finished;            ///< Last operation done: header.sequence << 8 | kind.
  alignas(kCacheLine) pthread_mutex_t life;  ///< Robust; held while the rank lives.
  std::atomic<uint32_t> attached;
  std::atomic<uint32_t> left;  ///< 1: the rank destroyed its group; it did not die.
  std::atomic<uint32_t> dead;  ///< 1: another rank noticed its death.
  CpuSet cpus;                 ///< Those on which it may run.
  int32_t allocate_failed;     ///< errno-like flag of the allocate() in progress.
  alignas(kCacheLine) std::byte inline_data[2][kInlineBytes];
};

/// The first error of any rank; all throw it.
struct GroupError {
  enum State : uint32_t { kNone, kWriting, kReady };
  std::atomic<uint32_t> state;
  int32_t code;
  char text[2048];
};

/// The place of rank 0's memory for the allocate() in progress.
struct AllocateRecord {
  RemoteFd memory;
  int32_t failed;
};

/// The progress of a large message, which lies in its sender's memory until the receiver has it.
/// `state` holds the message's number times kStates, plus a State.
struct alignas(kCacheLine) Offer {
  enum State : uint64_t {
    kOffered,    ///< By the sender, which may withdraw it.
    kWithdrawn,  ///< The sender withdrew or failed: bytes that the receiver has copied are invalid.
    kMapped,     ///< The receiver copies from its mapping of memory from allocate().
    kClaimed,    ///< Both ends copy: see lane.h.
    kTaken,      ///< The receiver has all of it.
  };
  static constexpr uint64_t kStates = 8;
  std::atomic<uint64_t> state;
};

/// One direction between two ranks: a ring of bytes, and a lane for large messages.
struct alignas(kCacheLine) Channel {
  std::atomic<uint64_t> written;                   ///< Bytes written so far, by the sender.
  alignas(kCacheLine) std::atomic<uint64_t> read;  ///< Bytes read so far, by the receiver.
  SharedEvent changed;
  Offer offer;
  Lane lane;
  alignas(kCacheLine) std::byte ring[kChannelBytes];
  alignas(kCacheLine) std::byte slots[Lane::kSlots * Lane::kSlotBytes];
};

struct Head {
  static constexpr uint64_t kMagic = 0x354d4853504b434c;  // "LCKPSHM5"
  uint64_t magic;
  int64_t num_ranks;
  alignas(kCacheLine) SharedEvent event;
  alignas(kCacheLine) GroupError group_error;
  AllocateRecord allocation;
};

/// Two halves, used in turn, for a rank's input and for its output.
struct Staging {
  alignas(4096) std::byte in[2][kChunkBytes];
  alignas(4096) std::byte out[2][kChunkBytes];
};

/// Finds the parts in a mapping of control_bytes(num_ranks).
class Control {
 public:
  Control(std::byte* base, int num_ranks) : base_(base), num_ranks_(num_ranks) {}
  static int64_t control_bytes(int num_ranks);

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  RankSlot& slot(int rank) const { return at<RankSlot>(slots_offset(), rank); }
  Staging& staging(int rank) const { return at<Staging>(staging_offset(num_ranks_), rank); }
  Channel& channel(int from, int to) const {
    return at<Channel>(channels_offset(num_ranks_), from * num_ranks_ + to);
  }

 private:
  static int64_t slots_offset();
  static int64_t staging_offset(int num_ranks);
  static int64_t channels_offset(int num_ranks);
  template <class T>
  T& at(int64_t offset, int index) const {
    return reinterpret_cast<T*>(base_ + offset)[index];
  }

  std::byte* base_;
  int num_ranks_;
};

}  // namespace lockstep::shm
