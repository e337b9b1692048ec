#pragma once
// Adapters of Lockstep's types for c10d's engines. Files that include c10d's headers are in no
// unity build, because the headers share many names with Lockstep.

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <utility>
#include <vector>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/deadline.h"
#include "lockstep/store.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// The store by which an engine's ranks find each other: Lockstep's.
class StoreForC10d : public ::c10d::Store {
 public:
  StoreForC10d(std::shared_ptr<lockstep::Store> store, std::string prefix,
               std::chrono::milliseconds timeout)
      : Store(timeout), store_(std::move(store)), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    store_->set(prefix_ + key, std::string(value.begin(), value.end()), limit());
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const auto value = store_->get(prefix_ + key, limit());
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override {
    return store_->add(prefix_ + key, value, limit());
  }
  bool deleteKey(const std::string& key) override { return store_->erase(prefix_ + key, limit()); }
  bool check(const std::vector<std::string>& keys) override {
    return store_->check(prefixed(keys), limit());
  }
  int64_t getNumKeys() override {
    return static_cast<int64_t>(store_->list(prefix_, limit()).size());
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    store_->wait(prefixed(keys), Deadline::after(timeout));
  }
  /// Part of c10d's interface since libtorch 2.9, where it overrides.
  c10::intrusive_ptr<::c10d::Store> clone() {
    return c10::make_intrusive<StoreForC10d>(store_, prefix_, getTimeout());
  }

 private:
  Deadline limit() const { return Deadline::after(getTimeout()); }
  std::vector<std::string> prefixed(const std::vector<std::string>& keys) const {
    std::vector<std::string> all;
    for (const auto& key : keys) all.push_back(prefix_ + key);
    return all;
  }

  std::shared_ptr<lockstep::Store> store_;
  std::string prefix_;
};

/// For parts, see parts_of().
inline ::c10d::ReduceOp to_c10d(DType dtype, ReduceOp op) {
  switch (op_on_parts(dtype, op)) {
    case ReduceOp::kMin:
      return ::c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return ::c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return ::c10d::ReduceOp::PRODUCT;
    case ReduceOp::kBand:
      return ::c10d::ReduceOp::BAND;
    case ReduceOp::kBor:
      return ::c10d::ReduceOp::BOR;
    case ReduceOp::kBxor:
      return ::c10d::ReduceOp::BXOR;
    default:
      return ::c10d::ReduceOp::SUM;  // kAvg divides afterwards, kPremulSum multiplies before
  }
}

}  // namespace lockstep::inline internal
