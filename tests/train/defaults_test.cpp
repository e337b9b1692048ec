// A default stands once. Where the configuration, which is read without libtorch, has one of a
// struct that needs it, the two are the same.

#include <gtest/gtest.h>

#include <chrono>

#include "lockstep/data/loader.h"
#include "lockstep/ddp_options.h"
#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"

namespace lockstep {
namespace {

TEST(Defaults, OfTheSectionParallelAreThoseOfDataParallel) {
  const ParallelConfig config;
  const DdpOptions ddp;
  EXPECT_EQ(config.virtual_ranks, ddp.virtual_ranks);
  EXPECT_EQ(config.bucket_cap_mb, ddp.bucket_cap_mb);
  EXPECT_EQ(config.broadcast_buffers, ddp.broadcast_buffers);
  EXPECT_EQ(config.find_unused_parameters, ddp.find_unused_parameters);
  EXPECT_EQ(config.static_graph, ddp.static_graph);
  EXPECT_EQ(config.measure_wait, ddp.measure_wait);
  EXPECT_EQ(config.comm_hook == "none", ddp.comm_hook == nullptr);
  const GroupOptions group;
  EXPECT_EQ(config.backend, group.backend);
  EXPECT_EQ(config.any_order, group.order == Order::kAny);
  EXPECT_EQ(std::chrono::seconds(config.timeout_s), group.timeout);
}

TEST(Defaults, OfALoaderAreThoseOfItsOptions) {
  const LoaderConfig config;
  const LoaderOptions options;
  EXPECT_EQ(config.prefetch_size, options.prefetch);
  EXPECT_EQ(config.num_workers, options.threads);
  EXPECT_EQ(config.drop_remainder, options.drop_remainder);
}

}  // namespace
}  // namespace lockstep
