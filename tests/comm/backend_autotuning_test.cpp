// The choice of a back end between hosts when sums may have any order.

#include "lockstep/comm/group/backend_autotuning.h"
#include "lockstep/base/literals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(Fastest, LeavesTheFirstOnlyForAGain) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  EXPECT_EQ(fastest(std::array{1.0}), 0u);
  EXPECT_EQ(fastest(std::array{1.0, 0.5, 0.4}), 2u);
  EXPECT_EQ(fastest(std::array{1.0, 0.96}), 0u);
  EXPECT_EQ(fastest(std::array{1.0, 0.94}), 1u);
  EXPECT_EQ(fastest(std::array{1.0, kNever, 0.9}), 2u);
}

/// Does nothing but take time: a choice depends only on the duration of calls.
class Pretended final : public GroupImpl {
 public:
  explicit Pretended(std::chrono::milliseconds per_call = 0ms) : per_call_(per_call) {}
  void all_reduce(void*, int64_t, DType, ReduceOp, const Waiting&) override {
    std::this_thread::sleep_for(per_call_);
  }
  void broadcast(void*, int64_t, DType, int, const Waiting&) override {}
  void all_gather(const void*, void*, int64_t, DType, const Waiting&) override {}
  void reduce_scatter(const void*, void*, int64_t, DType, ReduceOp, const Waiting&) override {}
  void reduce(void*, int64_t, DType, ReduceOp, int, const Waiting&) override {}
  void exchange(const Exchange&, const void*, void*, const Waiting&) override {}
  void barrier(const Waiting&) override {}
  bool send(const void*, const MessageHeader&, int, const Waiting&) override { return true; }
  bool receive(int, MessageSink&, const Waiting&) override { return true; }
  std::shared_ptr<SharedBuffer> allocate(int64_t, const Waiting&) override {
    struct Nothing final : SharedBuffer {
      void* data() const override { return nullptr; }
      int64_t bytes() const override { return 0; }
    };
    return std::make_shared<Nothing>();
  }
  void give_up(const Error&, Deadline) noexcept override {}

 private:
  std::chrono::milliseconds per_call_;
};

bool yes(std::string*) {
  return true;
}
bool yes_for(const GroupSpec&, std::string*) {
  return true;
}
bool on_rank_0(const GroupSpec& spec, std::string* why_not) {
  if (spec.rank != 0) *why_not = "not rank 0";
  return spec.rank == 0;
}
std::unique_ptr<GroupImpl> at_once(const GroupSpec&, Deadline) {
  return std::make_unique<Pretended>();
}
/// Set while no rank runs.
std::chrono::milliseconds slow_call;
std::unique_ptr<GroupImpl> slow(const GroupSpec&, Deadline) {
  return std::make_unique<Pretended>(slow_call);
}
std::unique_ptr<GroupImpl> not_on_rank_1(const GroupSpec& spec, Deadline deadline) {
  if (spec.rank == 1) throw Error(ErrorCode::kUnavailable, "no such card");
  return at_once(spec, deadline);
}

/// "... NAME 12.34 ms ...": 12.34; 0 if it is missing.
double figure_of(const std::string& name, const std::string& line) {
  const size_t place = line.find(" " + name + " ");
  return place == std::string::npos ? 0 : std::strtod(&line[place + name.size() + 2], nullptr);
}

/// The back end that all ranks of two hosts have chosen.
std::string chosen(const HostLayout& hosts, const GroupOptions& options) {
  std::array<std::string, 2> names;
  run_rank_threads(hosts, [&](const World& world) {
    names[static_cast<size_t>(world.rank)] = ProcessGroup::create(world, options).backend();
  });
  EXPECT_EQ(names[0], names[1]);
  return names[0];
}

TEST(BackendAutotuning, TakesWhatIsFastestForAllRanks) {
  const GroupOptions any = {.order = Order::kAny};
  register_backend({"slow", "", yes, yes_for, slow});
  register_backend({"one-sided", "", yes, on_rank_0, at_once});
  register_backend({"broken", "", yes, yes_for, not_on_rank_1});
  ::testing::internal::CaptureStderr();
  slow_call = 500ms;  // much more than native needs on a busy machine
  EXPECT_EQ(chosen({1, 1}, any), "native");
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, HasSubstr("sums in any order: native (1 MiB and 8 MiB: native "));
  EXPECT_GE(figure_of("slow", line), 1000) << "one call of each size, in ms";
  EXPECT_THAT(line, HasSubstr("not one-sided: another rank cannot"));
  EXPECT_THAT(line, HasSubstr("not broken: another rank cannot"));

  register_backend({"fast", "", yes, yes_for, at_once});
  slow_call = 50ms;
  EXPECT_EQ(chosen({1, 1}, any), "fast");
  // Not within a host, not in fixed order, and never instead of a named one.
  EXPECT_EQ(chosen({2}, any), "native");
  EXPECT_EQ(chosen({1, 1}, {}), "native");
  EXPECT_EQ(chosen({1, 1}, {.backend = "slow", .order = Order::kAny}), "slow");
}

TEST(BackendAutotuning, OrdersMustAgree) {
  run_rank_threads({1, 1}, [](const World& world) {
    const auto order = world.rank == 0 ? Order::kFixed : Order::kAny;
    const Error error = error_of([&] { ProcessGroup::create(world, {.order = order}); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 has backend 'auto', rank 1 has 'auto, any order'"));
  });
}

}  // namespace
}  // namespace lockstep::testing
