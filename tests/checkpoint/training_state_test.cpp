#include "lockstep/checkpoint_folder.h"

#include "lockstep/checkpoint/training_state_format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TrainingState example() {
  TrainingState state;
  state.model = "resnet18";
  state.epoch = 2;
  state.step = 40;
  state.batch_in_epoch = 7;
  state.epoch_samples = 448;
  state.samples_digest = ~uint64_t{1};
  state.dealt_anew = true;
  state.epoch_loss = 0.1 + 0.2;
  state.epoch_items = 5120;
  state.epoch_seconds = 1.0 / 7;
  state.samples = 2560;
  state.schedule_step = 40;
  state.dropped_batches = 3;
  state.loss_scale = LossScaleState{0.1 + 0.2, 17, 3};
  state.seed = ~uint64_t{0};
  state.world_size = 2;
  state.virtual_ranks = 4;
  state.metric = "acc";
  record_metric(state, 0.1);
  record_metric(state, 1.0 / 3);
  state.plateau = PatienceState{"loss", 0.1 + 0.2, 2, 1, false};
  state.early_stopping = PatienceState{.metric = "acc", .waited = 3};
  state.rng = std::string("\x00\x7f\xff", 3);
  return state;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Error error_in(const std::string& json) {
  return error_of([&] { decode_training_state(json, "dir/state.json"); });
}

TEST(TrainingState, RoundTrips) {
  const FileDigests files = {{"model.safetensors", {123, "poly1305", "abc"}},
                             {"optimizer.safetensors", {4, "sha256", "def"}}};
  const auto decoded = decode_training_state(encode_training_state(example(), files), "f");
  EXPECT_EQ(decoded.state, example());
  EXPECT_EQ(decoded.files, files);
  EXPECT_EQ(decode_training_state(encode_training_state({}, {}), "f").state, TrainingState{});
}

TEST(TrainingState, HasADigestOfNoNamesApartFromAnUnknownOne) {
  TrainingState state;
  EXPECT_EQ(encode_training_state(state, {}).find("samples_digest"), std::string::npos);
  state.samples_digest = 0;
  EXPECT_EQ(decode_training_state(encode_training_state(state, {}), "f").state, state);
}

TEST(TrainingState, TakesVirtualRanksByTheirOldName) {
  const auto text = encode_training_state(example(), {});
  const auto old = replaced(text, "\"virtual_ranks\": 4", "\"shards\": 4");
  EXPECT_EQ(decode_training_state(old, "f").state, example());
  const auto both = replaced(text, "\"virtual_ranks\": 4", "\"shards\": 4, \"virtual_ranks\": 4");
  EXPECT_NE(std::string(error_in(both).what()).find("virtual_ranks"), std::string::npos);
}

TEST(TrainingState, RecordsTheBest) {
  TrainingState state;
  EXPECT_TRUE(record_metric(state, 0.5));
  EXPECT_FALSE(record_metric(state, 0.5));
  EXPECT_TRUE(record_metric(state, 0.6));
  EXPECT_FALSE(record_metric(state, std::nan("")));
  EXPECT_EQ(state.best->value, 0.6);
  EXPECT_EQ(state.history.size(), 4u);
  state.higher_is_better = false;
  EXPECT_TRUE(record_metric(state, 0.4));
}

TEST(TrainingState, AnInfiniteFigureIsNoBest) {
  TrainingState state;
  EXPECT_FALSE(record_metric(state, HUGE_VAL));
  EXPECT_FALSE(state.best);
  EXPECT_TRUE(record_metric(state, 0.5));
  EXPECT_FALSE(record_metric(state, HUGE_VAL));
  EXPECT_EQ(state.best->value, 0.5);
}

// An early version took an infinite figure for the best, and wrote null.
TEST(TrainingState, ABestWithoutAFigureIsThatOfTheHistory) {
  TrainingState state;
  rank_by(state, "psnr", true);
  for (const double value : {20.0, 30.0, 25.0}) record_metric(state, value);
  state.best->value = HUGE_VAL;
  const auto decoded = decode_training_state(encode_training_state(state, {}), "state.json");
  ASSERT_TRUE(decoded.state.best);
  EXPECT_EQ(decoded.state.best->value, 30);
}

TEST(TrainingState, AnotherMetricStartsAnew) {
  TrainingState state = example();
  rank_by(state, "acc", true);
  EXPECT_EQ(state, example());
  rank_by(state, "train_loss", false);
  EXPECT_EQ(state.metric, "train_loss");
  EXPECT_FALSE(state.metric_value || state.best || !state.history.empty());
  EXPECT_TRUE(record_metric(state, 2.5)) << "worse than 1/3, were the two the same";
}

TEST(TrainingState, TheSameMetricRanksAnewByItsOtherEnd) {
  TrainingState state;
  rank_by(state, "error", true);
  for (const double value : {0.5, 0.25, std::nan(""), 0.25, 0.75}) {
    ++state.epoch;
    record_metric(state, value);
  }
  ASSERT_EQ(state.best->value, 0.75);
  rank_by(state, "error", false);
  EXPECT_EQ(state.best, state.history.at(1)) << "the first of equals";
  EXPECT_EQ(state.history.size(), 5U);
  EXPECT_FALSE(record_metric(state, 0.25));
  EXPECT_TRUE(record_metric(state, 0.125));
}

TEST(TrainingState, AWatchedMetricHasItsDirection) {
  TrainingState state = example();
  state.early_stopping = PatienceState{.metric = "error", .waited = 3, .higher_is_better = false};
  const auto text = encode_training_state(state, {});
  EXPECT_EQ(decode_training_state(text, "f").state, state);
  // A file without one is of the loss, of which less is better, or of a metric of which more is.
  const auto older = replaced(text, ",\n    \"higher_is_better\": false\n  },\n  \"files\"",
                              "\n  },\n  \"files\"");
  const auto decoded = decode_training_state(older, "f").state;
  EXPECT_TRUE(decoded.early_stopping->higher_is_better);
  EXPECT_FALSE(decoded.plateau->higher_is_better);
}

TEST(TrainingState, NoNumberIsNull) {
  TrainingState state;
  record_metric(state, std::nan(""));
  const auto decoded = decode_training_state(encode_training_state(state, {}), "f").state;
  EXPECT_FALSE(decoded.metric_value);
  EXPECT_TRUE(std::isnan(decoded.history.at(0).value));
}

TEST(TrainingState, NamesFileAndFieldOfDamage) {
  const std::string json = encode_training_state(example(), {});
  const auto expect = [](const Error& error, const std::string& what) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_EQ(std::string(error.what()), "dir/state.json: " + what);
  };
  expect(error_in(json.substr(0, json.size() / 2)), "not JSON; it was damaged");
  expect(error_in("[]"), "'' is no object");
  expect(error_in(replaced(json, "\"epoch\": 2", "\"epoch\": -2")),
         "'epoch' must be a whole number of at least 0");
  expect(error_in(replaced(json, "\"samples\"", "\"sample\"")), "'samples' is missing");
  expect(error_in(replaced(json, "\"seed\"", "\"x\": 1, \"seed\"")), "'x' is unknown");
  expect(error_in(replaced(json, "\"world_size\": 2", "\"world_size\": 0")),
         "'world_size' must be at least 1");
  expect(error_in(replaced(json, "\"value\": 0.1", "\"value\": \"a\"")),
         "'metric.history[0].value' must be a number or null");
  expect(error_in(replaced(json, "\"clean_steps\"", "\"clean_step\"")),
         "'loss_scale.clean_steps' is missing");
  expect(error_in(replaced(json, "0.30000000000000004,\n    \"clean", "0,\n    \"clean")),
         "'loss_scale.scale' must be a number greater than 0");
  expect(error_in(replaced(json, "007fff", "007ffg")), "'rng' must be pairs of hex digits");
}

TEST(TrainingState, RefusesOtherFormats) {
  const std::string json = encode_training_state(example(), {});
  const Error older = error_in(replaced(json, "\"format\": 3", "\"format\": 1"));
  EXPECT_EQ(std::string(older.what()), "dir/state.json: 'format' must be 2 to 3");
  const Error error = error_in(replaced(json, "\"format\": 3", "\"format\": 4"));
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("format 4"), std::string::npos) << error.what();
}

TEST(TrainingState, ReadsFormat2) {
  const FileDigests files = {{"model.safetensors", {123, "sha256", "abc"}}};
  const auto json = encode_training_state(example(), files);
  const auto decoded = decode_training_state(replaced(json, "\"format\": 3", "\"format\": 2"), "f");
  EXPECT_EQ(decoded.state, example());
  EXPECT_EQ(decoded.files, files);
}

TEST(TrainingState, TheJsonOfOtherProgramsIsTold) {
  EXPECT_TRUE(may_be_training_state(encode_training_state({}, {})));
  EXPECT_TRUE(may_be_training_state("{")) << "damaged";
  for (const char* other : {"{}", "[]", "3", R"({"files": ["a"]})", R"({"epoch": 3})"}) {
    EXPECT_FALSE(may_be_training_state(other)) << other;
  }
}

TEST(TrainingState, AFileHasADigest) {
  const auto json = encode_training_state({}, {{"a", {1, "poly1305", "abc"}}});
  EXPECT_EQ(std::string(error_in(replaced(json, "poly1305", "md5")).what()),
            "dir/state.json: 'files.a.poly1305' is missing");
}

}  // namespace
}  // namespace lockstep
