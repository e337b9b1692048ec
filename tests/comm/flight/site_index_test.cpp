#include "lockstep/comm/flight/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

/// A table and its index, as a recorder has them.
struct Table {
  std::array<FlightSite, kFlightSites> sites;
  SiteIndex index{sites.data()};

  std::string at(uint16_t site) const {
    const FlightSite& entry = sites.at(site - size_t{1});
    return entry.file + (":" + std::to_string(entry.line));
  }
};

TEST(SiteIndex, FindsAgainWhatItAdded) {
  Table table;
  const char* const file = "/src/lockstep/trainer.cpp";
  const uint16_t first = table.index.find_or_add({file, 88});
  const uint16_t second = table.index.find_or_add({file, 89});
  const uint16_t other = table.index.find_or_add({"main.cpp", 88});
  EXPECT_EQ(table.at(first), "trainer.cpp:88");
  EXPECT_EQ(table.at(second), "trainer.cpp:89");
  EXPECT_EQ(table.at(other), "main.cpp:88");
  EXPECT_EQ(table.index.find_or_add({file, 88}), first);
  EXPECT_EQ(table.index.find_or_add({file, 89, 3}), second) << "of a bucket, but the same place";
}

TEST(SiteIndex, KeepsTheEndOfALongName) {
  Table table;
  constexpr size_t kRoom = sizeof FlightSite::file - 1;
  const std::string fits(kRoom, 'f');
  const std::string longer = std::string(300, 'x') + "/y" + fits;
  EXPECT_EQ(table.at(table.index.find_or_add({fits.c_str(), 1})), fits + ":1");
  EXPECT_EQ(table.at(table.index.find_or_add({longer.c_str(), 2})), fits + ":2");
  EXPECT_EQ(table.at(table.index.find_or_add({"folder/", 3})), ":3");
}

TEST(SiteIndex, LeavesUnknownWhatIsUnknownOrTooMuch) {
  Table table;
  EXPECT_EQ(table.index.find_or_add({}), 0);
  EXPECT_EQ(table.index.find_or_add({"main.cpp", 0}), 0);
  EXPECT_EQ(table.index.find_or_add({nullptr, 1}), 0);
  const char* const file = "main.cpp";
  std::vector<uint16_t> known;
  std::set<uint16_t> places;
  for (uint32_t line = 1; line <= 3 * kFlightSites; ++line) {
    known.push_back(table.index.find_or_add({file, line}));
    if (known.back() != 0) places.insert(known.back());
    EXPECT_LE(known.back(), kFlightSites);
  }
  EXPECT_EQ(places.size(), kFlightSites) << "each place is somebody's, and of one only";
  EXPECT_EQ(std::count(known.begin(), known.end(), 0), 2 * kFlightSites);
  for (uint32_t line = 1; line <= 3 * kFlightSites; ++line) {
    const uint16_t again = table.index.find_or_add({file, line});
    EXPECT_EQ(again, known[line - 1]);
    if (again != 0) {
      EXPECT_EQ(table.at(again), "main.cpp:" + std::to_string(line));
    }
  }
}

TEST(SiteIndex, ManyThreadsAddTheSamePlacesAtOnce) {
  constexpr int kThreads = 4;
  constexpr uint32_t kLines = 20;
  Table table;
  const char* const file = "main.cpp";
  std::barrier start(kThreads);
  std::array<std::array<uint16_t, kLines>, kThreads> found{};
  std::vector<std::thread> threads;
  for (auto& own : found) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (uint32_t i = 0; i < kLines; ++i) own.at(i) = table.index.find_or_add({file, i + 1});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& own : found) {
    for (uint32_t i = 0; i < kLines; ++i) {
      ASSERT_NE(own.at(i), 0);
      EXPECT_EQ(table.at(own.at(i)), "main.cpp:" + std::to_string(i + 1));
    }
  }
}

}  // namespace
}  // namespace lockstep
