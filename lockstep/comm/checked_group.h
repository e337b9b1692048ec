#pragma once
// The error contract that Lockstep adds to other engines (MPI, libtorch's).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/message_matcher.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// Memory that an engine was given and has not returned.
///
/// After a wait that ended with an error, the engine may still read or write such memory. It is
/// kept here instead of being freed. Threads: any.
class OrphanedBuffers {
 public:
  void keep(std::shared_ptr<void> memory);
  /// Leaves all memory to the process, which never frees it: for engines that outlive their group.
  void leave_to_process();

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Other engines report neither late ranks nor differing calls, and they take mismatched calls for
/// data. So the ranks compare their calls before each collective: one 16-byte all_reduce of the
/// engine, and one of 8 bytes if counts may differ. After an error each rank writes its call into
/// the store, and the late and the differing ranks are named from there. The first error written is
/// the error of the group. Operations that need only this and bytes from rank to rank are
/// implemented here for all engines.
class CheckedGroup : public GroupImpl {
 public:
  void barrier(const Waiting& waiting) final;
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting) final;
  bool receive(int source, MessageSink& sink, const Waiting& waiting) final;
  /// Memory of this rank alone.
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) final;
  /// A waiting rank sees it at its next look_for_trouble().
  void give_up(const Error& error, Deadline deadline) noexcept final;

 protected:
  explicit CheckedGroup(const GroupSpec& spec) : spec_(spec) {}

  /// Runs `body` as the collective that `header` describes; fills in its sequence number.
  template <class Body>
  void collective(OpHeader header, const Waiting& waiting, const Body& body) {
    check_call(header);
    header.sequence = ++sequence_;
    header_ = header;
    agreed(true, [&] {
      require_equal_headers(waiting);
      body();
    });
  }
  /// The collective under way; for its thread only.
  WaitReason this_collective() const;

  /// Throws kMismatch, the same on every rank, unless each rank expects the counts that the others
  /// send to it.
  void require_equal_counts(const Exchange& exchange, const Waiting& waiting);

  /// `use(T*)` lets the engine work on `values`, which are then returned. If `use` throws, the
  /// engine may still access the values: they become orphaned.
  template <class T, class Use>
  std::vector<T> with_buffer(std::vector<T> values, const Use& use) {
    const auto memory = std::make_shared<std::vector<T>>(std::move(values));
    try {
      use(memory->data());
    } catch (...) {
      orphaned_buffers_.keep(memory);
      throw;
    }
    return std::move(*memory);
  }

  /// Throws the group error if there is one. In a collective it also throws an error that another
  /// rank has met and is about to explain: this rank must then report its own call. Reads the
  /// store; called every kLookPause of a wait.
  void look_for_trouble(const WaitReason& reason) const;
  /// For a call that failed because of another call, whose thread is about to write the reason:
  /// throws that reason. Returns if none is written soon.
  void await_group_error() const;
  static constexpr std::chrono::seconds kStoreLimit{5};
  /// Longest time that ranks wait, after an error, for the calls that other ranks report. All ranks
  /// must end within a second of a deadline.
  static constexpr std::chrono::milliseconds kLongestGrace{800};

  // The engine's part. Memory is the caller's, or comes from with_buffer().

  /// Throws kInvalidArgument for a call that the engine cannot serve. Nothing has been sent.
  virtual void check_call(const OpHeader& /*header*/) const {}
  /// Replaces values[0, count) by their reduction (kMax or kSum) over all ranks.
  virtual void fold(int64_t* values, int count, ReduceOp op, const Waiting& waiting) = 0;
  /// All messages between two ranks keep their order. `bytes` > 0.
  virtual void bytes_to(int peer, const void* data, int64_t bytes, const WaitReason& reason,
                        const Waiting& waiting) = 0;
  virtual void bytes_from(int peer, void* data, int64_t bytes, const WaitReason& reason,
                          const Waiting& waiting) = 0;
  /// The group has ended with an error: no thread will wait for operations in progress. Each thread
  /// that meets an error calls it; `in_collective`: the thread of the collectives.
  virtual void stop(bool in_collective) noexcept = 0;

  const GroupSpec spec_;
  OrphanedBuffers orphaned_buffers_;

 private:
  /// Runs `body`; an error that it throws becomes the group error, or is replaced by the existing
  /// one.
  template <class Body>
  void agreed(bool is_collective, const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      throw_agreed(error, is_collective);
    } catch (const std::exception& error) {
      throw_agreed(Error(ErrorCode::kInternal, error.what()), is_collective);
    }
  }
  [[noreturn]] void throw_agreed(const Error& error, bool is_collective);
  Error agreed_error(const Error& error, bool is_collective) const;
  Error explain(const Error& error) const;
  Error first_trouble(const Error& error) const;
  std::vector<std::string> gather_calls() const;
  void require_equal_headers(const Waiting& waiting);
  Error different_counts(const Exchange& exchange, const Waiting& waiting);

  OpHeader header_;  // of the collective under way; its thread's
  uint64_t sequence_ = 0;
};

}  // namespace lockstep::inline internal
