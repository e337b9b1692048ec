#include "lockstep/training_checkpoint.h"
#include "lockstep/checkpoint/writer.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/weights.h"
#include "tests/checkpoint/small_net.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Training {
  explicit Training(int64_t width = 8) : net(width) { state.model = "small"; }

  void advance(int count) {
    train(net, optimizer, static_cast<int>(state.step), count);
    state.step += count;
    state.metric_value.reset();
  }
  fs::path save(const fs::path& dir, const KeepPolicy& policy = {}) {
    state.rng = rng_bytes();
    return save_checkpoint(dir, net, optimizer, state, policy);
  }
  void load(const fs::path& path) {
    state = load_checkpoint(path, net, optimizer, "small");
    set_rng_bytes(state.rng);
  }

  SmallNet net;
  torch::optim::Adam optimizer{net.parameters(), torch::optim::AdamOptions(0.01)};
  TrainingState state;
};

void expect_equal(const Training& a, const Training& b) {
  const TensorMap weights = module_tensors(b.net);
  for (const auto& [name, tensor] : module_tensors(a.net)) {
    EXPECT_TRUE(same_bits(weights.at(name), tensor)) << name;
  }
  const TensorMap memory = optimizer_tensors(b.net, b.optimizer);
  for (const auto& [name, tensor] : optimizer_tensors(a.net, a.optimizer)) {
    EXPECT_TRUE(same_bits(memory.at(name), tensor)) << name;
  }
}

std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(dir)) names.push_back(item.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void flip_last_byte(const fs::path& file) {
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(file, bytes);
}

/// Replaces a part of the file by one that differs.
void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string bytes = read_file(file);
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write_file_atomically(file, bytes.replace(at, from.size(), to));
}

/// Makes the newest checkpoint one of format 2.
void make_older(const fs::path& folder) {
  const fs::path file = folder / "state.json";
  auto [state, files] = decode_training_state(read_file(file), file.string());
  for (auto& [name, digest] : files) digest = digest_file(folder / name, "sha256");
  write_file_atomically(file, encode_training_state(state, files));
  replace_in(file, "\"format\": 3", "\"format\": 2");
}

TEST(TrainingCheckpoint, TenAndTenAreTwenty) {
  const TempFolder dir;
  Training whole;
  whole.advance(10);
  whole.save(dir.path());
  whole.advance(10);

  Training resumed;
  resumed.load(dir.path());
  EXPECT_EQ(resumed.state.step, 10);
  resumed.advance(10);
  expect_equal(whole, resumed);
}

TEST(TrainingCheckpoint, HoldsTheNamedFilesAndLinks) {
  const TempFolder dir;
  Training run;
  run.advance(1);
  record_metric(run.state, 0.9);
  EXPECT_EQ(run.save(dir / "a/b"), dir / "a/b/step_000001");
  EXPECT_EQ(names_in(dir / "a/b"), (std::vector<std::string>{"best", "latest", "step_000001"}));
  EXPECT_EQ(names_in(dir / "a/b/latest"),
            (std::vector<std::string>{"model.safetensors", "optimizer.safetensors", "state.json"}));
  run.advance(1);
  record_metric(run.state, 0.8);
  run.save(dir / "a/b");
  EXPECT_EQ(fs::read_symlink(dir / "a/b/latest"), "step_000002");
  EXPECT_EQ(fs::read_symlink(dir / "a/b/best"), "step_000001");
}

TEST(TrainingCheckpoint, ExtraFilesComeBackOrAreRefused) {
  const TempFolder dir;
  Training run;
  run.advance(1);
  const at::Tensor values = at::arange(5);
  const ExtraFiles extra = {{"more_0.safetensors", {{{"a", values}}, {{"for", "rank 0"}}}}};
  run.state.rng = rng_bytes();
  save_checkpoint(dir.path(), run.net, run.optimizer, run.state, {}, {}, extra);
  const auto found = load_extra(dir.path(), "more_0.safetensors");
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->tensors.at("a").equal(values));
  EXPECT_EQ(found->metadata.at("for"), "rank 0");
  EXPECT_FALSE(load_extra(dir.path(), "more_1.safetensors").has_value());
  Training resumed;
  resumed.load(dir.path());
  expect_equal(run, resumed);
  flip_last_byte(dir / "latest/more_0.safetensors");
  const Error error = error_of([&] { load_extra(dir.path(), "more_0.safetensors"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("more_0.safetensors: the bytes are not those saved"),
            std::string::npos)
      << error.what();
}

TEST(TrainingCheckpoint, AnOlderFormatIsReadAndUpdated) {
  const TempFolder dir;
  Training run;
  run.advance(2);
  const fs::path folder = run.save(dir.path());
  make_older(folder);
  Training resumed;
  resumed.load(dir.path());
  expect_equal(run, resumed);
  record_metric(run.state, 0.5);
  update_checkpoint(dir.path(), run.state, {});
  Training again;
  again.load(dir.path());
  EXPECT_EQ(again.state.metric_value, 0.5);
  expect_equal(run, again);
}

/// Addresses of all values that a checkpoint replaces.
std::vector<const void*> places(const Training& run) {
  std::vector<const void*> all;
  for (const TensorMap& part : {module_tensors(run.net), optimizer_slots(run.net, run.optimizer)}) {
    for (const auto& [name, tensor] : part) all.push_back(tensor.data_ptr());
  }
  return all;
}

TEST(TrainingCheckpoint, IsReadIntoTheTensorsThatAreThere) {
  const TempFolder dir;
  Training run;
  run.advance(1);
  run.save(dir.path());
  Training saved;
  saved.load(dir.path());
  run.advance(1);
  const auto before = places(run);
  const auto version = run.net.last->weight._version();
  run.load(dir.path());
  EXPECT_EQ(places(run), before);
  EXPECT_GT(run.net.last->weight._version(), version) << "autograd is not told";
  expect_equal(run, saved);
}

TEST(TrainingCheckpoint, IsReadIntoTensorsInAnotherOrder) {
  const TempFolder dir;
  Training run;
  run.advance(1);
  run.save(dir.path());
  Training other;
  other.net.first->weight.set_data(at::zeros({4, 8}).t());  // its values do not lie in C order
  other.load(dir.path());
  EXPECT_FALSE(other.net.first->weight.is_contiguous());
  expect_equal(run, other);
}

// It can be saved; loading must not stop halfway.
TEST(TrainingCheckpoint, ATensorThatCannotBeFilledIsNamedBeforeAnyChange) {
  const TempFolder dir;
  const at::Tensor shared = at::ones({1, 8}).expand({4, 8});
  Training run;
  run.net.register_buffer("other", shared);
  run.advance(2);
  run.save(dir.path());
  Training resumed;
  resumed.net.register_buffer("other", shared);
  const at::Tensor before = resumed.net.first->weight.clone();
  const Error error = error_of([&] { resumed.load(dir.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("tensor 'other' of the network"), std::string::npos)
      << error.what();
  EXPECT_TRUE(at::equal(resumed.net.first->weight, before));
  EXPECT_TRUE(optimizer_tensors(resumed.net, resumed.optimizer).empty());
}

TEST(TrainingCheckpoint, KeepsWhatThePolicySays) {
  const TempFolder dir;
  Training run;
  for (const double metric : {0.1, 0.5, 0.3, 0.2}) {
    run.advance(1);
    record_metric(run.state, metric);
    run.save(dir.path(), {Keep::kLatest, 1, true});
  }
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{"best", "latest", "step_000002", "step_000004"}));
}

TEST(TrainingCheckpoint, RanksOnlyByTheMetricOfTheRun) {
  const TempFolder dir;
  Training run;
  rank_by(run.state, "train_loss", false);
  run.advance(1);
  record_metric(run.state, 2.5);
  run.save(dir.path(), {Keep::kTopK, 2, false});
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000001");
  rank_by(run.state, "acc", true);
  run.advance(1);
  run.save(dir.path(), {Keep::kTopK, 2, true});
  EXPECT_FALSE(fs::exists(fs::symlink_status(dir / "best"))) << "nothing has that metric yet";
  for (const double acc : {0.1, 0.2}) {
    run.advance(1);
    record_metric(run.state, acc);
    run.save(dir.path(), {Keep::kTopK, 2, true});
  }
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{"best", "latest", "step_000003", "step_000004"}));
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000004");
}

TEST(TrainingCheckpoint, LaterStepsOfAnAbandonedRunAreLeftAlone) {
  const TempFolder dir;
  Training run;
  run.advance(1);
  run.save(dir.path());
  run.advance(9);
  run.save(dir.path());
  run.load(dir / "step_000001");
  run.advance(1);
  run.save(dir.path(), {Keep::kLatest, 1, true});
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{"latest", "step_000002", "step_000010"}));
  EXPECT_EQ(find_checkpoint(dir.path()), dir / "step_000002");
}

TEST(TrainingCheckpoint, CleansUpAfterACrash) {
  const TempFolder dir;
  WriterName dead = WriterName::own();
  ++dead.start;
  const std::string half = ".step_000001.tmp-" + dead.text();
  fs::create_directories(dir / half);
  write_file_atomically(dir / half / "model.safetensors", "half");
  EXPECT_FALSE(has_checkpoint(dir.path()));
  Training run;
  run.save(dir.path());
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"latest", "step_000000"}));
}

TEST(TrainingCheckpoint, AGenerationThatIsReplacedSavesNoMore) {
  const TempFolder dir;
  Training run;
  const auto save = [&](const WriterFence& fence) {
    run.advance(1);
    return save_checkpoint(dir / "new", run.net, run.optimizer, run.state, {}, fence);
  };
  const WriterFence first(dir / "new", "job", 1);
  save(first);
  const WriterFence second(dir / "new", "job", 2);
  const Error error = error_of([&] { save(first); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_NE(std::string(error.what()).find("generation 2 of this job"), std::string::npos);
  EXPECT_EQ(find_checkpoint(dir / "new"), dir / "new" / "step_000001");
  save(second);
  EXPECT_EQ(find_checkpoint(dir / "new"), dir / "new" / "step_000003");
  // Within a save, too: the newer one has removed its folder.
  const auto replaced = [&](const fs::path&) { WriterFence(dir / "new", "job", 3); };
  const auto content = copy_content(run.net, run.optimizer, run.state);
  EXPECT_EQ(error_of([&] { write_checkpoint(dir / "new", content, {}, second, replaced); }).code(),
            ErrorCode::kMismatch);
}

TEST(TrainingCheckpoint, AFullDiskLeavesTheOldOne) {
  const TempFolder dir;
  Training run(1000);
  run.advance(1);
  run.save(dir.path());
  run.advance(1);
  {
    // The model (about 44 kB) fits, the optimizer's state (56 kB) does not.
    const FileSizeLimit limit(50 << 10);
    EXPECT_EQ(error_of([&] { run.save(dir.path()); }).code(), ErrorCode::kIo);
  }
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"latest", "step_000001"}));
  Training resumed(1000);
  resumed.load(dir.path());
  EXPECT_EQ(resumed.state.step, 1);
}

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    for (int i = 0; i < 2; ++i) {
      run_.advance(1);
      run_.save(dir_.path());
    }
  }
  void expect_refused(ErrorCode code, const std::string& what) {
    Training run;
    Training untouched;
    load_module(untouched.net, module_tensors(run.net), "");
    const Error error = error_of([&] { run.load(dir_.path()); });
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(exit_status(error), 2);
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    expect_equal(untouched, run);
  }

  TempFolder dir_;
  Training run_;
  const fs::path latest_ = dir_ / "step_000002";
};

TEST_F(DamageTest, AFlippedBitIsSeen) {
  flip_last_byte(latest_ / "model.safetensors");
  expect_refused(ErrorCode::kCorrupt,
                 "step_000002/model.safetensors: the bytes are not those saved (Poly1305 differs); "
                 "to go on from an older checkpoint name " +
                     (dir_ / "step_000001").string());
}

TEST_F(DamageTest, AFlippedBitIsSeenInAnOlderFormat) {
  make_older(latest_);
  flip_last_byte(latest_ / "optimizer.safetensors");
  expect_refused(ErrorCode::kCorrupt,
                 "step_000002/optimizer.safetensors: the bytes are not those saved (SHA-256 "
                 "differs); to go on from an older checkpoint name ");
}

TEST_F(DamageTest, ADamagedHeaderIsNamedSo) {
  for (const char* type : {"X32", "U32"}) {  // the second is a type, which libtorch lacks
    replace_in(latest_ / "model.safetensors", "F32", type);
    expect_refused(ErrorCode::kCorrupt, "the bytes are not those saved (Poly1305 differs); ");
    replace_in(latest_ / "model.safetensors", type, "F32");
  }
}

TEST_F(DamageTest, ATruncatedFileIsSeen) {
  fs::resize_file(latest_ / "optimizer.safetensors", 100);
  expect_refused(ErrorCode::kCorrupt, "step_000002/optimizer.safetensors: 100 bytes, ");
}

TEST_F(DamageTest, AMissingFileIsSeen) {
  fs::remove(latest_ / "model.safetensors");
  expect_refused(ErrorCode::kCorrupt, "step_000002/model.safetensors: no such file");
}

TEST_F(DamageTest, ABrokenStateIsSeen) {
  write_file_atomically(latest_ / "state.json", "{");
  expect_refused(ErrorCode::kCorrupt, "step_000002/state.json: not JSON");
}

TEST_F(DamageTest, WithoutAnOlderOneTheAdviceIsToStartAnew) {
  fs::remove_all(dir_ / "step_000001");
  write_file_atomically(latest_ / "state.json", "{");
  expect_refused(ErrorCode::kCorrupt, "there is no older checkpoint beside it");
}

TEST_F(DamageTest, AnotherWidthNamesTheTensor) {
  Training other(9);
  const Error error = error_of([&] { other.load(dir_.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(
      std::string(error.what())
          .find("model.safetensors: tensor 'first.bias' has shape [8], the network's has [9]; the "
                "file is as it was saved, so this run has another network or optimizer"),
      std::string::npos)
      << error.what();
  EXPECT_EQ(std::string(error.what()).find("older"), std::string::npos)
      << "which is of the same shape: " << error.what();
}

TEST_F(DamageTest, AnotherNetworkOrOptimizerIsAnInputError) {
  SmallNet net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
  Error error = error_of([&] { load_checkpoint(dir_.path(), net, sgd, "large"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("of network 'small', this run has 'large'"),
            std::string::npos);
  error = error_of([&] { load_checkpoint(dir_.path(), net, sgd, "small"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("state of Adam, this run's optimizer is SGD"),
            std::string::npos);
}

TEST_F(DamageTest, WeightsAloneLoadFromFileAndFolder) {
  for (const fs::path& path : {dir_.path(), latest_, latest_ / "model.safetensors"}) {
    SmallNet net;
    load_weights(path, net);
    EXPECT_TRUE(same_bits(net.last->weight, run_.net.last->weight));
  }
}

TEST_F(DamageTest, AFlippedBitIsSeenWhereWeightsAloneAreTaken) {
  const fs::path file = latest_ / "model.safetensors";
  fs::copy_file(file, dir_ / "alone.safetensors");
  for (const fs::path& one : {file, dir_ / "alone.safetensors"}) flip_last_byte(one);
  const auto refused = [](const std::function<void()>& load) {
    const Error error = error_of(load);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what())
                  .find("step_000002/model.safetensors: the bytes are not those saved (Poly1305 "
                        "differs)"),
              std::string::npos)
        << error.what();
  };
  SmallNet net;
  const at::Tensor before = net.last->weight.clone();
  for (const fs::path& path : {dir_.path(), latest_, file}) {
    refused([&] { load_weights(path, net); });
    refused([&] { load_weights(path, net, {false, ""}); });
  }
  refused([&] { read_weights(file); });
  EXPECT_TRUE(at::equal(net.last->weight, before));
  load_weights(dir_ / "alone.safetensors", net);
  load_weights(dir_ / "step_000001", net);
}

// As a run leaves it where weights_format is safetensors.
TEST_F(DamageTest, AFlippedBitOfAHardLinkToTheBestIsSeen) {
  fs::remove(dir_ / "best");
  fs::create_directory_symlink("step_000002", dir_ / "best");
  const fs::path link = dir_ / "best.safetensors";
  fs::create_hard_link(latest_ / "model.safetensors", link);
  SmallNet net;
  load_weights(link, net);
  fs::remove(link);
  flip_last_byte(latest_ / "model.safetensors");  // writes a new file
  fs::create_hard_link(latest_ / "model.safetensors", link);
  const Error error = error_of([&] { load_weights(link, net); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("best.safetensors: the bytes are not those saved"),
            std::string::npos)
      << error.what();
  fs::remove(dir_ / "best");
  fs::create_directory_symlink("step_000001", dir_ / "best");
  load_weights(link, net);  // of no checkpoint that is known
}

TEST_F(DamageTest, WeightsBehindALinkToAFolderAreChecked) {
  fs::create_directory_symlink("step_000002", dir_ / "link");
  const fs::path file = dir_ / "link" / "model.safetensors";
  SmallNet net;
  load_weights(file, net);
  flip_last_byte(file);
  const Error error = error_of([&] { load_weights(file, net); });
  EXPECT_NE(std::string(error.what()).find("link/model.safetensors: the bytes are not those saved"),
            std::string::npos)
      << error.what();
}

TEST_F(DamageTest, TheStateOfAnotherProgramDoesNotMatter) {
  fs::create_directory(dir_ / "other");
  fs::copy_file(latest_ / "model.safetensors", dir_ / "other" / "model.safetensors");
  write_file_atomically(dir_ / "other" / "state.json", R"({"epoch": 3})");
  SmallNet net;
  load_weights(dir_ / "other" / "model.safetensors", net);
  EXPECT_TRUE(same_bits(net.last->weight, run_.net.last->weight));
  write_file_atomically(dir_ / "other" / "state.json", "{");
  EXPECT_EQ(error_of([&] { load_weights(dir_ / "other" / "model.safetensors", net); }).code(),
            ErrorCode::kCorrupt);
}

TEST_F(DamageTest, AFlippedBitOfAnAverageIsSeen) {
  const ExtraFiles average = {{kEmaFile, {module_tensors(run_.net), {}}}};
  save_checkpoint(dir_ / "ema", run_.net, run_.optimizer, run_.state, {}, {}, average);
  const fs::path file = weights_in(dir_ / "ema", /*averaged=*/true);
  ASSERT_EQ(file.filename(), kEmaFile);
  SmallNet net;
  load_weights(file, net);
  flip_last_byte(file);
  EXPECT_NE(std::string(error_of([&] { load_weights(file, net); }).what())
                .find("ema.safetensors: the bytes are not those saved"),
            std::string::npos);
}

TEST(RandomState, RoundTripsAndRefusesOthers) {
  const std::string before = rng_bytes();
  const at::Tensor drawn = at::rand({5});
  set_rng_bytes(before);
  EXPECT_TRUE(at::equal(at::rand({5}), drawn));
  EXPECT_EQ(error_of([] { set_rng_bytes("abc"); }).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace lockstep
