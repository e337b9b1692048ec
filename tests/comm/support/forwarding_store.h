#pragma once
// A store that forwards requests to another one, and reports them to derived classes.

#include <memory>
#include <utility>

#include "lockstep/store.h"

namespace lockstep::testing {

class ForwardingStore : public Store {
 private:  // first, because its results are deduced
  template <class Call>
  auto look(const Call& call) {
    begins();
    return call(*inner_);
  }
  template <class Call>
  auto pass_on(const Call& call) {
    auto result = look(call);
    succeeded();
    return result;
  }

 public:
  explicit ForwardingStore(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  void set(std::string_view key, std::string_view value, Deadline deadline) override {
    pass_on([&](Store& to) { return to.set(key, value, deadline), 0; });
  }
  void set_many(std::span<const KeyValue> items, Deadline deadline) override {
    pass_on([&](Store& to) { return to.set_many(items, deadline), 0; });
  }
  std::string get(std::string_view key, Deadline deadline) override {
    return pass_on([&](Store& to) { return to.get(key, deadline); });
  }
  std::optional<std::string> try_get(std::string_view key, Deadline deadline) override {
    return look([&](Store& to) { return to.try_get(key, deadline); });
  }
  int64_t add(std::string_view key, int64_t delta, Deadline deadline) override {
    return pass_on([&](Store& to) { return to.add(key, delta, deadline); });
  }
  void set_if_missing(std::string_view key, std::string_view value, Deadline deadline) override {
    pass_on([&](Store& to) { return to.set_if_missing(key, value, deadline), 0; });
  }
  Swap compare_set(std::string_view key, const std::optional<std::string>& expected,
                   std::string_view desired, Deadline deadline) override {
    return pass_on([&](Store& to) { return to.compare_set(key, expected, desired, deadline); });
  }
  bool set_with_lease(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Deadline deadline) override {
    return pass_on([&](Store& to) { return to.set_with_lease(key, value, ttl, deadline); });
  }
  void wait(std::span<const std::string> keys, Deadline deadline) override {
    pass_on([&](Store& to) { return to.wait(keys, deadline), 0; });
  }
  bool arrive(std::string_view own, std::string_view value, std::span<const std::string> awaited,
              Deadline deadline) override {
    return pass_on([&](Store& to) { return to.arrive(own, value, awaited, deadline); });
  }
  bool check(std::span<const std::string> keys, Deadline deadline) override {
    return look([&](Store& to) { return to.check(keys, deadline); });
  }
  bool erase(std::string_view key, Deadline deadline) override {
    return pass_on([&](Store& to) { return to.erase(key, deadline); });
  }
  std::vector<std::string> list(std::string_view prefix, Deadline deadline) override {
    return look([&](Store& to) { return to.list(prefix, deadline); });
  }
  Changes watch(std::string_view prefix, uint64_t since, Deadline deadline) override {
    return pass_on([&](Store& to) { return to.watch(prefix, since, deadline); });
  }

 protected:
  virtual void begins() {}  ///< Any call.
  /// A call that succeeded; polls of the present state do not count, because their number depends
  /// on time.
  virtual void succeeded() {}

 private:
  const std::shared_ptr<Store> inner_;
};

}  // namespace lockstep::testing
