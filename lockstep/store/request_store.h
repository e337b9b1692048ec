#pragma once
// The half of a store that all kinds share: limits, results and errors.

#include <cstdint>
#include <string>

#include "lockstep/base/in_child.h"
#include "lockstep/store/request.h"

namespace lockstep::inline internal {

/// The calls of KeyValueStore. `Interface` is that, or Store.
template <class Interface>
class BasicRequestStore : public Interface {
 public:
  void set(std::string_view key, std::string_view value, Deadline deadline) override;
  void set_many(std::span<const KeyValueStore::KeyValue> items, Deadline deadline) override;
  void set_if_missing(std::string_view key, std::string_view value, Deadline deadline) override;
  std::optional<std::string> try_get(std::string_view key, Deadline deadline) override;
  bool set_with_lease(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Deadline deadline) override;
  bool erase(std::string_view key, Deadline deadline) override;
  std::vector<std::string> list(std::string_view prefix, Deadline deadline) override;
  KeyValueStore::Changes watch(std::string_view prefix, uint64_t since, Deadline deadline) override;

 protected:
  /// Carries out a request that is within the limits. A wait that is unfinished at the deadline is
  /// cancelled, so that the reply contains the missing keys.
  virtual StoreReply call(StoreRequest request, Deadline deadline) = 0;

  /// For messages: "store at 10.0.0.1:2345".
  virtual std::string name() const = 0;

  /// The reply of call(). Errors: those of the request's limits and of the reply.
  StoreReply ask(StoreRequest request, Deadline deadline);

  /// True in a process that was forked from the client's.
  bool in_child() const { return generation_ != fork_generation(); }

 private:
  const uint32_t generation_ = fork_generation();
};
extern template class BasicRequestStore<KeyValueStore>;
extern template class BasicRequestStore<Store>;

class RequestStore : public BasicRequestStore<Store> {
 public:
  std::string get(std::string_view key, Deadline deadline) override;
  int64_t add(std::string_view key, int64_t delta, Deadline deadline) override;
  Swap compare_set(std::string_view key, const std::optional<std::string>& expected,
                   std::string_view desired, Deadline deadline) override;
  void wait(std::span<const std::string> keys, Deadline deadline) override;
  bool arrive(std::string_view own, std::string_view value, std::span<const std::string> awaited,
              Deadline deadline) override;
  bool check(std::span<const std::string> keys, Deadline deadline) override;
};

}  // namespace lockstep::inline internal
