#pragma once
// What the back ends on other engines (MPI, libtorch's) add to them: the error contract.

#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/native/op_header.h"

namespace lockstep {

/// Such engines say neither who is late nor what others called, and take calls that do not fit each
/// other for data. So the ranks compare what they are about to do before each collective (one
/// 16-byte all_reduce of the engine), and after an error write it into the store, from which the
/// late and the differing are named. The first error written down is the verdict of all ranks.
class CheckedGroup : public GroupImpl {
 protected:
  explicit CheckedGroup(const GroupSpec& spec) : spec_(spec) {}

  /// Runs `body` as the collective that `header` says (its sequence is filled in here).
  template <class Body>
  void collective(OpHeader header, const Waiting& waiting, const Body& body) {
    check_call(header);
    header.sequence = ++sequence_;
    header_ = header;
    try {
      require_equal_headers(waiting);
      body();
    } catch (const Error& error) {
      throw_agreed(error, true);
    } catch (const std::exception& error) {
      throw_agreed(Error(ErrorCode::kInternal, error.what()), true);
    }
  }
  /// Throws `error`, or what another rank has written down before.
  [[noreturn]] void throw_agreed(const Error& error, bool is_collective);
  /// Throws the verdict if there is one, or what another rank has met and is about to explain: then
  /// this one must say where it is. Asks the store; for every kLook of a wait.
  void look_for_trouble() const;
  static constexpr std::chrono::milliseconds kLook{100};

  /// Throws kInvalidArgument for what the engine cannot do. Nothing has been sent.
  virtual void check_call(const OpHeader& header) const = 0;
  /// Replaces values[0, count) by their greatest over all ranks.
  virtual void greatest(int64_t* values, int count, const Waiting& waiting) = 0;

  static constexpr std::chrono::seconds kStoreLimit{5};
  const GroupSpec spec_;
  OpHeader header_;  // of the collective under way

 private:
  void require_equal_headers(const Waiting& waiting);
  Error explain(const Error& error) const;

  uint64_t sequence_ = 0;
};

}  // namespace lockstep
