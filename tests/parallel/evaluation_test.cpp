#include "lockstep/evaluation.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/recorded_calls.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

TEST(Evaluation, MeansAreOverSamplesNotOverRanks) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const std::vector<std::vector<double>> samples = {{1, 2, 3, 4}, {}, {10}};
    const auto& mine = samples[static_cast<size_t>(world.rank)];
    double sum = 0;
    for (const double sample : mine) sum += sample;
    EXPECT_EQ(global_mean(group, sum, std::ssize(mine)), 4);
    EXPECT_TRUE(std::isnan(global_mean(group, 0, 0)));
  });
}

TEST(Evaluation, BuffersBecomeThoseOfRankZero) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const torch::nn::BatchNorm1d norm(3);
    norm->running_mean.fill_(world.rank + 1);
    norm->num_batches_tracked.fill_(world.rank + 5);
    broadcast_buffers(group, *norm);
    EXPECT_TRUE(norm->running_mean.equal(torch::ones({3})));
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 5);
  });
}

TEST(Evaluation, SumsHaveNames) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto sums = global_sums(group, {{"right", 3.0 + world.rank}, {"samples", 5}});
    EXPECT_EQ(sums, (std::map<std::string, double>{{"right", 7}, {"samples", 10}}));
    EXPECT_TRUE(global_sums(group, {}).empty());
    const Error error = error_of([&] {
      global_sums(group, {{world.rank == 0 ? "right" : "wrong", 1}});
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("rank 1 has metric 'wrong'"), std::string::npos)
        << error.what();
  });
}

TEST(Evaluation, RowsOfAnyNumberComeInRankOrder) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const int64_t own = 2 * world.rank;  // 0, 2, 4
    const auto rows = torch::full({own, 3}, world.rank, torch::kFloat);
    const auto all = gather_rows(group, rows.t().contiguous().t());
    const auto wanted = torch::cat({torch::full({2, 3}, 1.0F), torch::full({4, 3}, 2.0F)});
    EXPECT_TRUE(all.equal(wanted)) << all;
    EXPECT_EQ(gather_rows(group, torch::zeros({0}, torch::kLong)).numel(), 0);
    const auto turning = torch::complex(torch::ones({1}), torch::full({1}, 1.0F * world.rank));
    EXPECT_TRUE(torch::imag(gather_rows(group, turning.conj())).equal(-torch::arange(3.0F)));
    const Error other = error_of([&] {
      gather_rows(group, torch::zeros({1, 2 + world.rank / 2}));
    });
    EXPECT_EQ(other.code(), ErrorCode::kMismatch);
  });
}

// Each rank enters the collective, so each gets the error at once and the group still works.
TEST(Evaluation, WhatHasNoRowsIsAnErrorOnEveryRank) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    for (const auto& [tensor, text] :
         {std::pair<torch::Tensor, std::string>{torch::tensor(1), "a tensor without dimensions"},
          {torch::Tensor(), "an undefined tensor"},
          {torch::eye(2).to_sparse(), "a tensor that is not dense"}}) {
      const Error all = error_of([&, bad = tensor] { gather_rows(group, bad); });
      EXPECT_EQ(all.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(all.what(), "gather_rows of " + text);
      const Error one = error_of([&, bad = tensor] {
        gather_rows(group, world.rank == 1 ? bad : torch::ones({1, 3}));
      });
      EXPECT_EQ(one.code(), ErrorCode::kMismatch);
      EXPECT_EQ(one.what(), "the ranks differ: rank 1 has " + text +
                                " where rank 0 has rows of Float [3] (1 and 1 items in all)");
    }
    EXPECT_EQ(gather_rows(group, torch::ones({1, 3})).size(0), 3);
  });
}

TEST(Evaluation, ErrorsCallRanksByTheirNumbersInTheWorld) {
  run_rank_threads(3, [](World world) {
    const auto all = ProcessGroup::create(world);
    if (world.rank == 0) return;
    auto group = all.subgroup({2, 1});
    const Error error = error_of([&] { global_sums(group, {{world.rank == 1 ? "a" : "b", 1}}); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_STREQ(error.what(),
                 "the ranks differ: rank 1 has metric 'a' where rank 2 has metric 'b' (1 and 1 "
                 "items in all)");
  });
}

TEST(Evaluation, TextsMayBeEmpty) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const std::vector<std::vector<std::string>> texts = {{"one", ""}, {}, {"dos", "três"}};
    const auto all = gather_texts(group, texts[static_cast<size_t>(world.rank)]);
    EXPECT_EQ(all, (std::vector<std::string>{"one", "", "dos", "três"}));
    EXPECT_TRUE(gather_texts(group, {}).empty());
  });
}

TEST(Evaluation, OneProcessKeepsWhatItHas) {
  run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    EXPECT_EQ(global_mean(group, 6, 4), 1.5);
    EXPECT_TRUE(gather_rows(group, torch::ones({2})).equal(torch::ones({2})));
    EXPECT_EQ(gather_texts(group, {"a"}), std::vector<std::string>{"a"});
  });
}

TEST(Evaluation, IsRecordedAsCalledByItsCaller) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    size_t before = testing::recorded_calls(world.rank).size();
    const auto told = [&](int line) {
      const auto calls = testing::recorded_calls(world.rank);
      EXPECT_GT(calls.size(), before);
      for (; before < calls.size(); ++before) {
        EXPECT_EQ(calls[before].site, "evaluation_test.cpp:" + std::to_string(line))
            << to_string(calls[before]);
      }
    };
    global_mean(group, 1, 1);
    told(__LINE__ - 1);
    global_sums(group, {{"right", 1}});
    told(__LINE__ - 1);
    gather_rows(group, torch::ones({1, 3}));
    told(__LINE__ - 1);
    gather_texts(group, {"one"});
    told(__LINE__ - 1);
  });
}

}  // namespace
}  // namespace lockstep
