#include "lockstep/distributed_sampler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Indices = std::vector<int64_t>;

// The expected values below are from PyTorch 1.13.1.

TEST(TorchRandperm, GivesTorchsOrder) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(torch_randperm(5, 0), (Indices{4, 0, 1, 3, 2}));
  EXPECT_EQ(torch_randperm(5, 1), (Indices{0, 4, 2, 3, 1}));
  EXPECT_EQ(torch_randperm(7, 0), (Indices{4, 0, 5, 3, 2, 6, 1}));
  EXPECT_EQ(torch_randperm(7, 3), (Indices{5, 3, 4, 6, 0, 2, 1}));
  EXPECT_EQ(torch_randperm(10, 0), (Indices{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  EXPECT_EQ(torch_randperm(10, 1), (Indices{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}));
  EXPECT_EQ(torch_randperm(10, 42), (Indices{2, 6, 1, 8, 4, 5, 0, 9, 3, 7}));
  EXPECT_EQ(torch_randperm(11, 0), (Indices{10, 0, 4, 3, 5, 8, 2, 1, 9, 7, 6}));
  EXPECT_EQ(torch_randperm(12, 7), (Indices{3, 4, 0, 5, 7, 9, 11, 6, 8, 1, 10, 2}));
  EXPECT_EQ(torch_randperm(3, 0), (Indices{2, 0, 1}));
  EXPECT_EQ(torch_randperm(4, -1), (Indices{3, 1, 2, 0}));
  EXPECT_EQ(torch_randperm(16, 0), (Indices{12, 10, 9, 6, 11, 8, 13, 5, 2, 14, 15, 0, 4, 3, 7, 1}));
  EXPECT_EQ(torch_randperm(16, int64_t{1} << 31),
            (Indices{10, 7, 15, 11, 9, 13, 0, 5, 6, 2, 14, 12, 3, 1, 8, 4}));
  EXPECT_EQ(torch_randperm(16, kMax),
            (Indices{3, 4, 1, 8, 2, 14, 0, 10, 9, 13, 11, 6, 5, 15, 7, 12}));
  EXPECT_EQ(torch_randperm(0, 0), Indices{});
  EXPECT_EQ(torch_randperm(1, 9), Indices{0});
}

/// First 16 hex digits of the SHA-256 of the little-endian int64 values.
std::string digest(const Indices& indices) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const unsigned char*>(indices.data()), indices.size() * sizeof(int64_t),
         hash.data());
  return hex_digits(std::span(hash).first(8));
}

TEST(TorchRandperm, GivesTorchsOrderOfLargeSets) {
  EXPECT_EQ(digest(torch_randperm(1000, 0)), "cee4a88ef6120e8e");
  EXPECT_EQ(digest(torch_randperm(50000, 0)), "62d58f141ce65ae7");
  EXPECT_EQ(digest(torch_randperm(50000, 5)), "329320c1c3b67f49");
  EXPECT_EQ(digest(torch_randperm(60000, 123)), "fdc83961e4279c64");
  EXPECT_EQ(digest(torch_randperm(1281167, 0)), "bbf70b62862c7ae6");
}

struct Case {
  int64_t n;
  int ranks;
  bool shuffle;
  int64_t seed;
  int64_t epoch;
  bool drop_last;
};

Indices indices_of(const Case& c, int rank) {
  DistributedSampler sampler(c.n, rank, c.ranks,
                             {.shuffle = c.shuffle, .seed = c.seed, .drop_last = c.drop_last});
  sampler.set_epoch(c.epoch);
  return sampler.indices();
}

std::vector<Indices> all_ranks(const Case& c) {
  std::vector<Indices> all;
  for (int rank = 0; rank < c.ranks; ++rank) all.push_back(indices_of(c, rank));
  return all;
}

using Ranks = std::vector<Indices>;

TEST(DistributedSampler, DealsInOrder) {
  EXPECT_EQ(all_ranks({10, 3, false, 0, 0, false}),
            (Ranks{{0, 3, 6, 9}, {1, 4, 7, 0}, {2, 5, 8, 1}}));
  EXPECT_EQ(all_ranks({10, 3, false, 0, 0, true}), (Ranks{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}));
  EXPECT_EQ(all_ranks({10, 4, false, 0, 0, false}),
            (Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}}));
  EXPECT_EQ(all_ranks({10, 4, false, 0, 0, true}), (Ranks{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(all_ranks({11, 4, false, 0, 0, false}),
            (Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 0}}));
  EXPECT_EQ(all_ranks({12, 4, false, 0, 0, false}),
            (Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}}));
  EXPECT_EQ(all_ranks({13, 4, false, 0, 0, true}),
            (Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}}));
}

TEST(DistributedSampler, RepeatsAListShorterThanTheRanks) {
  EXPECT_EQ(all_ranks({3, 8, false, 0, 0, false}), (Ranks{{0}, {1}, {2}, {0}, {1}, {2}, {0}, {1}}));
  EXPECT_EQ(all_ranks({3, 8, false, 0, 0, true}), Ranks(8));
  EXPECT_EQ(all_ranks({1, 4, false, 0, 0, false}), (Ranks{{0}, {0}, {0}, {0}}));
  EXPECT_EQ(all_ranks({2, 5, false, 0, 0, false}), (Ranks{{0}, {1}, {0}, {1}, {0}}));
  EXPECT_EQ(all_ranks({3, 8, true, 0, 0, false}), (Ranks{{2}, {0}, {1}, {2}, {0}, {1}, {2}, {0}}));
  EXPECT_EQ(all_ranks({0, 3, true, 0, 0, false}), Ranks(3));
  EXPECT_EQ(all_ranks({0, 3, false, 0, 0, true}), Ranks(3));
}

TEST(DistributedSampler, DealsShuffled) {
  EXPECT_EQ(all_ranks({10, 3, true, 0, 0, false}),
            (Ranks{{4, 5, 0, 2}, {1, 3, 8, 4}, {7, 9, 6, 1}}));
  EXPECT_EQ(all_ranks({10, 3, true, 0, 1, false}),
            (Ranks{{5, 2, 9, 4}, {6, 0, 3, 5}, {1, 8, 7, 6}}));
  const Ranks seed42 = {{2, 8, 0, 7}, {6, 4, 9, 2}, {1, 5, 3, 6}};
  EXPECT_EQ(all_ranks({10, 3, true, 42, 0, false}), seed42);
  EXPECT_EQ(all_ranks({10, 3, true, 0, 42, false}), seed42);
  EXPECT_EQ(all_ranks({10, 3, true, 0, 0, true}), (Ranks{{4, 5, 0}, {1, 3, 8}, {7, 9, 6}}));
  EXPECT_EQ(all_ranks({11, 4, true, 7, 3, false}),
            (Ranks{{10, 1, 9}, {6, 3, 5}, {8, 2, 4}, {0, 7, 10}}));
  EXPECT_EQ(all_ranks({11, 4, true, 7, 3, true}), (Ranks{{10, 1}, {6, 3}, {8, 2}, {0, 7}}));
  EXPECT_EQ(all_ranks({16, 4, true, 0, 2, false}),
            (Ranks{{8, 6, 4, 15}, {13, 7, 2, 14}, {1, 0, 10, 5}, {9, 11, 12, 3}}));
}

TEST(DistributedSampler, UnpaddedPositionsHoldEverySampleOnce) {
  for (int64_t n = 0; n <= 25; ++n) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      Indices seen;
      for (int rank = 0; rank < ranks; ++rank) {
        const DistributedSampler sampler(n, rank, ranks, {.seed = 5});
        const auto own = sampler.indices();
        ASSERT_EQ(static_cast<int64_t>(own.size()), sampler.num_samples());
        ASSERT_LE(sampler.num_unpadded(), sampler.num_samples());
        seen.insert(seen.end(), own.begin(), own.begin() + sampler.num_unpadded());
      }
      std::sort(seen.begin(), seen.end());
      Indices expected(static_cast<size_t>(n));
      for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int64_t>(i);
      EXPECT_EQ(seen, expected) << n << " samples on " << ranks << " ranks";
    }
  }
}

TEST(DistributedSampler, DropLastNeverPads) {
  const DistributedSampler sampler(10, 0, 4, {.drop_last = true});
  EXPECT_EQ(sampler.num_samples(), 2);
  EXPECT_EQ(sampler.num_unpadded(), 2);
}

TEST(DistributedSampler, TakesItsPlaceFromTheWorld) {
  World world;
  world.rank = 2;
  world.size = 3;
  EXPECT_EQ(DistributedSampler(10, world, {.shuffle = false}).indices(), (Indices{2, 5, 8, 1}));
}

TEST(DistributedSampler, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(DistributedSampler(-1, 0, 1), Error);
  EXPECT_THROW(DistributedSampler(4, 2, 2), Error);
  EXPECT_THROW(DistributedSampler(4, -1, 2), Error);
  EXPECT_THROW(DistributedSampler(4, 0, 0), Error);
  EXPECT_THROW(DistributedSampler(kMaxShuffled + 1, 0, 2), Error);
  EXPECT_EQ(DistributedSampler(kMaxShuffled + 1, 0, 2, {.shuffle = false}).num_samples(),
            kMaxShuffled / 2 + 1);
}

std::vector<Case> cases_for_torch() {
  std::vector<Case> cases;
  for (const int64_t n : {0, 1, 2, 7, 16, 100, 1023}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const int64_t seed : {int64_t{0}, int64_t{-3}, int64_t{1} << 40, int64_t{12345}}) {
        for (const bool drop_last : {false, true}) {
          cases.push_back({n, ranks, seed != 12345, seed, ranks + seed % 5, drop_last});
        }
      }
    }
  }
  return cases;
}

/// PyTorch's own answers, one line per case and rank.
std::vector<std::string> ask_torch(const std::vector<Case>& cases) {
  const auto name = fmt::format("{}/sampler-cases-{}", ::testing::TempDir(), getpid());
  {
    std::ofstream file(name);
    for (const auto& c : cases) {
      file << fmt::format("{} {} {:d} {} {} {:d}\n", c.n, c.ranks, c.shuffle, c.seed, c.epoch,
                          c.drop_last);
    }
  }
  const auto script =
      env_or("LOCKSTEP_SOURCE_DIR", ".") + "/tests/parallel/distributed_sampler_reference.py";
  std::string output;
  FILE* pipe = popen(fmt::format("/usr/bin/python3 {} < {}", script, name).c_str(), "r");
  std::array<char, 65536> buffer;
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), size);
  }
  EXPECT_EQ(pclose(pipe), 0);
  unlink(name.c_str());
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(DistributedSampler, AgreesWithTheRealOne) {
  const auto cases = cases_for_torch();
  const auto answers = ask_torch(cases);
  size_t at = 0;
  for (const auto& c : cases) {
    for (const auto& own : all_ranks(c)) {
      ASSERT_LT(at, answers.size());
      std::string text;
      for (const int64_t index : own) text += fmt::format("{}{}", text.empty() ? "" : " ", index);
      EXPECT_EQ(text, answers[at++])
          << c.n << " samples, " << c.ranks << " ranks, seed " << c.seed << ", epoch " << c.epoch;
    }
  }
  EXPECT_EQ(at, answers.size());
}

/// The samples of `steps` batches of `batch` samples on each of `ranks` ranks, behind `taken`
/// positions; fewer if the epoch ends. In the order of the list, over all ranks.
Indices take(int64_t dataset_size, int ranks, int64_t batch, int64_t steps, int64_t taken) {
  std::vector<Indices> lists;
  for (int rank = 0; rank < ranks; ++rank) {
    DistributedSampler sampler(dataset_size, rank, ranks, {.seed = 3});
    sampler.set_epoch(2);
    lists.push_back(sampler.indices(taken));
    EXPECT_EQ(std::ssize(lists.back()), sampler.num_samples(taken));
  }
  Indices all;
  const int64_t length = std::min(steps * batch, std::ssize(lists.front()));
  for (int64_t i = 0; i < length; ++i) {
    for (const auto& list : lists) all.push_back(list[static_cast<size_t>(i)]);
  }
  return all;
}

TEST(DistributedSampler, TheRestForAsManyRanksIsTheRestOfTheirLists) {
  for (const int64_t size : {1, 7, 24, 100, 101}) {
    for (const int ranks : {1, 2, 3, 5}) {
      DistributedSampler sampler(size, ranks - 1, ranks);
      const Indices whole = sampler.indices();
      for (int64_t t = 0; t * ranks < size; ++t) {
        EXPECT_EQ(sampler.indices(t * ranks), Indices(whole.begin() + t, whole.end()));
      }
    }
  }
}

// Ranks join and leave twice in an epoch. The used samples are a prefix of its order, and only the
// padding at its very end is used twice.
TEST(DistributedSampler, AnEpochThatIsDealtAnewUsesEverySampleOnce) {
  int64_t changes = 0;
  for (const int64_t size : {24, 97, 500}) {
    const Indices order = torch_randperm(size, 5);
    for (int first = 1; first <= 4; ++first) {
      for (int second = 1; second <= 8; ++second) {
        for (int third = 1; third <= 5; ++third) {
          for (const int64_t steps : {1, 2}) {
            Indices used = take(size, first, 3, steps, 0);
            if (std::ssize(used) >= size) continue;  // the end of an epoch is a different case
            for (const int64_t sample : take(size, second, 2, steps, std::ssize(used))) {
              used.push_back(sample);
            }
            if (std::ssize(used) >= size) continue;
            for (const int64_t sample : take(size, third, 3, size, std::ssize(used))) {
              used.push_back(sample);
            }
            ASSERT_GE(std::ssize(used), size);
            ASSERT_LT(std::ssize(used), size + third);
            for (int64_t i = 0; i < std::ssize(used); ++i) {
              ASSERT_EQ(used[static_cast<size_t>(i)], order[static_cast<size_t>(i % size)]);
            }
            ++changes;
          }
        }
      }
    }
  }
  EXPECT_GT(changes, 500);
}

/// An order of one's own: backward, from a sample that depends on the seed.
Indices backward(int64_t n, int64_t seed) {
  Indices order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = (n - 1 - i + seed) % n;
  return order;
}

/// An epoch of an order of one's own behind `taken` positions, over all ranks, without padding.
Indices rest_backward(int64_t size, int ranks, int64_t taken) {
  std::vector<Indices> lists;
  for (int rank = 0; rank < ranks; ++rank) {
    DistributedSampler sampler(size, rank, ranks, {.seed = 3, .order = backward});
    sampler.set_epoch(2);
    lists.push_back(sampler.indices(taken));
  }
  Indices all;
  for (size_t i = 0; std::ssize(all) < size - taken; ++i) {
    for (const auto& list : lists) all.push_back(list.at(i));
  }
  all.resize(static_cast<size_t>(size - taken));
  return all;
}

TEST(DistributedSampler, DealsAnOwnOrderToAnyNumberOfRanksAndGoesOnInIt) {
  for (const int64_t size : {6, 23}) {
    const Indices order = backward(size, 5);
    for (const int ranks : {1, 2, 3}) {
      for (const int64_t taken : {0, 1, 5}) {
        EXPECT_EQ(rest_backward(size, ranks, taken), Indices(order.begin() + taken, order.end()))
            << ranks << " ranks behind " << taken;
      }
    }
  }
  const DistributedSampler sequential(4, 0, 1, {.shuffle = false, .order = backward});
  EXPECT_EQ(sequential.indices(), (Indices{0, 1, 2, 3}));
}

TEST(DistributedSampler, PlacesAreWhereItsEntriesAreInTheList) {
  for (const int64_t size : {2, 23}) {
    const Indices order = backward(size, 5);
    for (const int ranks : {1, 2, 3}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const DistributedSampler shuffled(size, rank, ranks, {.seed = 5, .order = backward});
        const DistributedSampler sequential(size, rank, ranks, {.shuffle = false});
        for (const auto& [taken, more] : {std::pair{0, 0}, {0, 3}, {2, 0}, {2, 1}}) {
          Indices entries;
          for (const int64_t place : shuffled.places(taken, more)) {
            entries.push_back(order.at(static_cast<size_t>(place)));
          }
          EXPECT_EQ(entries, shuffled.indices(taken, more)) << rank << " of " << ranks;
          EXPECT_EQ(sequential.places(taken, more), sequential.indices(taken, more));
        }
      }
    }
  }
  EXPECT_EQ(DistributedSampler(5, 1, 2).places(1, 1), (Indices{2, 4, 1})) << "the last is padding";
  EXPECT_THROW((void)DistributedSampler(5, 0, 1).places(6), Error);
}

TEST(DistributedSampler, RefusesAnOrderOfOtherSizeAndNone) {
  const DistributedSampler sampler(
      5, 0, 1, {.order = [](int64_t n, int64_t seed) { return torch_randperm(n - 1, seed); }});
  EXPECT_STREQ(error_of([&] { (void)sampler.indices(); }).what(),
               "DistributedSampler: an order of 4 entries for 5 samples");
  const DistributedSampler beyond(5, 0, 1,
                                  {.order = [](int64_t n, int64_t) { return Indices(5, n); }});
  EXPECT_STREQ(error_of([&] { (void)beyond.indices(); }).what(),
               "DistributedSampler: an order with other samples than 0 to 4");
  EXPECT_STREQ(error_of([] { DistributedSampler(5, 0, 1, {.order = nullptr}); }).what(),
               "DistributedSampler: no order to shuffle by");
}

TEST(DistributedSampler, RefusesToTakeMoreThanThereIs) {
  EXPECT_THROW((void)DistributedSampler(5, 0, 1).indices(6), Error);
  EXPECT_THROW((void)DistributedSampler(5, 0, 1).indices(-1), Error);
  EXPECT_TRUE(DistributedSampler(5, 0, 2).indices(5).empty());
}

TEST(DistributedSampler, RefusesPaddingThatThereCannotBe) {
  const auto why = [](const DistributedSampler& sampler, int64_t more) {
    const Error error = error_of([&] { (void)sampler.indices(0, more); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  for (const bool shuffle : {false, true}) {
    const DistributedSampler none(0, 0, 1, {.shuffle = shuffle}), five(5, 0, 1);
    EXPECT_EQ(why(none, 1), "DistributedSampler: 1 entries of padding from an empty data set");
    EXPECT_EQ(why(five, -6), "DistributedSampler: -6 entries of padding");
    EXPECT_EQ(std::ssize(five.indices(0, 2)), 7);
  }
}

}  // namespace
}  // namespace lockstep
