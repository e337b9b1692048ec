#pragma once
// A back end for tests that calls another with the host's memory as the device's, so that the suite
// of all back ends runs on a group for devices.

#include <memory>
#include <utility>

#include "lockstep/comm/group_impl.h"

namespace lockstep::testing {

/// Reductions that `reduces` denies go to the group's part for the host, as its errors advise.
class OnDevice final : public GroupImpl {
 public:
  using Reduces = bool (*)(DType dtype, ReduceOp op);
  explicit OnDevice(std::unique_ptr<GroupImpl> impl, Reduces reduces = nullptr)
      : impl_(std::move(impl)), reduces_(reduces) {}
  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op, const Waiting& w) override {
    impl_->all_reduce(data, count, dtype, op, where(dtype, op, w));
  }
  void broadcast(void* data, int64_t count, DType dtype, int root, const Waiting& w) override {
    impl_->broadcast(data, count, dtype, root, there(w));
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& w) override {
    impl_->all_gather(in, out, count, dtype, there(w));
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& w) override {
    impl_->reduce_scatter(in, out, count, dtype, op, where(dtype, op, w));
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& w) override {
    impl_->reduce(data, count, dtype, op, root, where(dtype, op, w));
  }
  void exchange(const Exchange& exchange, const void* in, void* out, const Waiting& w) override {
    impl_->exchange(exchange, in, out, there(w));
  }
  void barrier(const Waiting& w) override { impl_->barrier(w); }
  bool send(const void* data, const MessageHeader& message, int to, const Waiting& w) override {
    return impl_->send(data, message, to, w);
  }
  bool receive(int from, MessageSink& sink, const Waiting& w) override {
    return impl_->receive(from, sink, w);
  }
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& w) override {
    return impl_->allocate(bytes, w);
  }
  void give_up(const Error& error, Deadline deadline) noexcept override {
    impl_->give_up(error, deadline);
  }

 private:
  static Waiting there(Waiting waiting) {
    waiting.on_device = true;
    return waiting;
  }
  Waiting where(DType dtype, ReduceOp op, const Waiting& waiting) const {
    return reduces_ == nullptr || reduces_(dtype, op) ? there(waiting) : waiting;
  }
  std::unique_ptr<GroupImpl> impl_;
  const Reduces reduces_;
};

}  // namespace lockstep::testing
