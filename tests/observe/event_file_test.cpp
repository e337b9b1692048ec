#include "lockstep/observe/event_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "lockstep/base/file.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using testing::EventReader;

TEST(EventFile, AnIndependentReaderFindsItsScalars) {
  const TempFolder dir;
  std::filesystem::path path;
  {
    EventFile file(dir / "tensorboard", 1, "host");
    path = file.path();
    file.add(1, {{"train/loss", 2.5}, {"train/lr", 0.1}});
    file.add(int64_t{1} << 40, {{"eval/acc", std::nan("")}});
  }
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents."));
  const auto events = EventReader::read(read_file(path));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 1);
  EXPECT_EQ(events[2].scalars,
            (std::map<std::string, float>{{"train/loss", 2.5f}, {"train/lr", 0.1f}}));
  EXPECT_GT(events[2].wall_time, 1.7e9);
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(events[3].scalars.at("eval/acc")));
}

TEST(EventFile, ALaterOneComesAfterItByName) {
  const TempFolder dir;
  std::vector<std::filesystem::path> paths;
  for (int run = 0; run < 4; ++run) {  // within a second, and of one process
    paths.push_back(EventFile(dir.path(), 10 * run, "host").path());
  }
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  EXPECT_EQ(EventReader::read(read_file(paths[3]))[1].step, 30);
}

TEST(EventFile, WritesWhileTheRunGoesOn) {
  const TempFolder dir;
  EventFile file(dir.path(), 1, "host");
  file.add(1, {{"train/loss", 1}});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  size_t found = 0;
  while (found < 3 && std::chrono::steady_clock::now() < end) {
    found = EventReader::read(read_file(file.path())).size();
    std::this_thread::yield();
  }
  EXPECT_EQ(found, 3U);
}

TEST(EventFile, WhoMayNotWriteAnyMoreIsToldSo) {
  const TempFolder dir;
  std::atomic<bool> given_up = false;
  std::filesystem::path path;
  {
    EventFile file(dir.path(), 1, "host", [&] {
      if (given_up) throw Error(ErrorCode::kMismatch, "given up");
    });
    path = file.path();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (read_file(path).empty() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    given_up = true;
    bool told = false;
    while (!told && std::chrono::steady_clock::now() < end) {
      try {
        file.add(1, {{"train/loss", 1}});
      } catch (const Error& error) {
        told = error.code() == ErrorCode::kMismatch;
      }
      std::this_thread::yield();
    }
    EXPECT_TRUE(told);
  }
  EXPECT_EQ(EventReader::read(read_file(path)).size(), 2U) << "only how it begins";
}

}  // namespace
}  // namespace lockstep
