#include "lockstep/checkpoint/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "lockstep/error.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TEST(BackgroundWriter, RunsInOrderWithoutHoldingUpItsCaller) {
  std::promise<void> go;
  std::vector<int> done;
  BackgroundWriter writer;
  EXPECT_TRUE(writer.idle());
  writer.submit([&] {
    go.get_future().wait();
    done.push_back(1);
  });
  writer.submit([&] { done.push_back(2); });
  EXPECT_FALSE(writer.idle());
  go.set_value();
  writer.wait();
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_TRUE(writer.idle());
}

TEST(BackgroundWriter, TheFirstErrorComesOutOnceAndEndsWhatWasGiven) {
  std::promise<void> go;
  std::atomic<bool> ran = false;
  BackgroundWriter writer;
  writer.submit([&] {
    go.get_future().wait();
    throw Error(ErrorCode::kIo, "the disk is full");
  });
  writer.submit([&] { ran = true; });
  go.set_value();
  EXPECT_STREQ(error_of([&] { writer.wait(); }).what(), "the disk is full");
  EXPECT_FALSE(ran);
  writer.submit([&] { ran = true; });
  writer.wait();
  EXPECT_TRUE(ran);
}

TEST(BackgroundWriter, EndsWithWhatWasGiven) {
  std::atomic<int> ran = 0;
  {
    BackgroundWriter writer;
    for (int i = 0; i < 10; ++i) writer.submit([&] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

}  // namespace
}  // namespace lockstep
