// The sampler in libtorch's own loaders.
#include "lockstep/data_sampler.h"

#include <gtest/gtest.h>
#include <torch/data.h>

#include <sstream>

namespace lockstep {
namespace {

/// Sample i is the number i.
struct Numbers : torch::data::Dataset<Numbers, int64_t> {
  int64_t get(size_t index) override { return static_cast<int64_t>(index); }
  torch::optional<size_t> size() const override { return 23; }
};

/// The samples of a loader in an epoch, with workers or without.
std::vector<int64_t> epoch_of(DataSampler& sampler, int64_t epoch, size_t workers) {
  auto loader = torch::data::make_data_loader(
      Numbers(), sampler, torch::data::DataLoaderOptions().batch_size(4).workers(workers));
  sampler.set_epoch(epoch);
  std::vector<int64_t> seen;
  for (const auto& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
  return seen;
}

TEST(DataSampler, GivesALoaderTheRanksSamplesOfEachEpoch) {
  for (const size_t workers : {0u, 2u}) {
    for (int rank = 0; rank < 3; ++rank) {
      DistributedSampler wanted(23, rank, 3);
      DataSampler sampler(wanted);
      EXPECT_EQ(sampler.num_samples(), 8);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        wanted.set_epoch(epoch);
        EXPECT_EQ(epoch_of(sampler, epoch, workers), wanted.indices()) << epoch;
      }
    }
  }
}

TEST(DataSampler, OneLoaderGoesThroughAllEpochs) {
  DistributedSampler wanted(23, 1, 2);
  DataSampler sampler(wanted);
  auto loader = torch::data::make_data_loader(Numbers(), sampler, 5);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    sampler.set_epoch(epoch);
    wanted.set_epoch(epoch);
    std::vector<int64_t> seen;
    for (const auto& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
    EXPECT_EQ(seen, wanted.indices()) << epoch;
  }
}

/// What save() of one sampler writes, read by load() of another.
void move_state(const DataSampler& from, DataSampler& to) {
  std::stringstream file;
  torch::serialize::OutputArchive out;
  from.save(out);
  out.save_to(file);
  torch::serialize::InputArchive in;
  in.load_from(file);
  to.load(in);
}

TEST(DataSampler, GoesOnWhereItWasSaved) {
  DataSampler sampler(DistributedSampler(23, 1, 2));
  sampler.set_epoch(5);
  sampler.reset({});
  sampler.next(5);
  DataSampler other(DistributedSampler(23, 1, 2));
  move_state(sampler, other);
  EXPECT_EQ(other.epoch(), 5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(other.next(3), sampler.next(3));
  EXPECT_FALSE(other.next(3).has_value());
}

/// All samples that a loader gives until its end.
template <class Loader>
std::vector<int64_t> rest_of(Loader& loader) {
  std::vector<int64_t> seen;
  for (const auto& batch : loader) seen.insert(seen.end(), batch.begin(), batch.end());
  return seen;
}

// begin() of a loader resets its sampler.
TEST(DataSampler, ALoaderGoesOnWhereItWasSaved) {
  DistributedSampler wanted(23, 1, 2);
  wanted.set_epoch(5);
  const auto whole = wanted.indices();
  DataSampler sampler(wanted);
  auto loader = torch::data::make_data_loader(Numbers(), sampler, 4);
  auto batch = loader->begin();
  const std::vector<int64_t> first = *batch;
  EXPECT_EQ(first, std::vector<int64_t>(whole.begin(), whole.begin() + 4));
  for (const size_t workers : {0u, 2u}) {
    DataSampler other(DistributedSampler(23, 1, 2));
    move_state(sampler, other);
    auto rest = torch::data::make_data_loader(
        Numbers(), other, torch::data::DataLoaderOptions().batch_size(4).workers(workers));
    other.set_epoch(5);  // as a loop over epochs does
    EXPECT_EQ(rest_of(*rest), std::vector<int64_t>(whole.begin() + 4, whole.end())) << workers;
    EXPECT_EQ(rest_of(*rest), whole) << "once only";
  }
}

TEST(DataSampler, AfterTheEndOfTheSavedEpochComesAWholeOne) {
  DataSampler sampler(DistributedSampler(23, 1, 2));
  sampler.next(100);
  DataSampler other(DistributedSampler(23, 1, 2));
  move_state(sampler, other);
  EXPECT_EQ(epoch_of(other, 0, 0), DistributedSampler(23, 1, 2).indices());
}

TEST(DataSampler, AnotherEpochAfterLoadIsWhole) {
  DataSampler sampler(DistributedSampler(23, 1, 2));
  sampler.next(5);
  DataSampler other(DistributedSampler(23, 1, 2));
  move_state(sampler, other);
  DistributedSampler wanted(23, 1, 2);
  wanted.set_epoch(1);
  EXPECT_EQ(epoch_of(other, 1, 0), wanted.indices());
}

}  // namespace
}  // namespace lockstep
