#include "lockstep/observe/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

std::vector<MetricsRecord> example(int64_t steps) {
  std::vector<MetricsRecord> records;
  for (int64_t step = 1; step <= steps; ++step) {
    const double t = static_cast<double>(step) / static_cast<double>(steps);
    const double noise = std::sin(static_cast<double>(step * step));
    const double loss = 2.3 * std::exp(-2 * t) + 0.15 * noise + 0.2;
    records.push_back(
        {"train",
         1,
         step,
         {{"loss", loss}, {"lr", 0.05 * (1 + std::cos(3.14159 * t))}, {"images_per_s", 300}}});
    if (step % (steps / 5) == 0) {
      const double acc = 1 - std::exp(-1.5 * t);
      records.push_back({"eval",
                         1,
                         step,
                         {{"loss", loss},
                          {"acc", acc},
                          {"top5", std::sqrt(acc)},
                          {"samples", 1},
                          {"seconds", t}}});
    }
  }
  return records;
}

TEST(Curves, ChartsOfARun) {
  const auto charts = run_charts(example(500));
  ASSERT_EQ(charts.size(), 4u);
  ASSERT_EQ(charts[0].series.size(), 3u);
  EXPECT_EQ(charts[0].series[1].label, "train, smoothed");
  EXPECT_EQ(charts[0].series[2].points.size(), 5u);
  ASSERT_EQ(charts[1].series.size(), 2u);
  EXPECT_EQ(charts[1].series[0].label, "acc");
  EXPECT_EQ(charts[2].title, "Learning rate");
  EXPECT_EQ(charts[3].title, "Speed");
  EXPECT_EQ(charts[3].series[0].points.size(), 500u);
}

TEST(Curves, SpeedIsSmoothedByTheTimeThatStepsTook) {
  std::vector<MetricsRecord> records;
  for (int64_t step = 1; step <= 200; ++step) {
    records.push_back({"train", 1, step, {{"images_per_s", step % 2 == 0 ? 10 : 30}}});
  }
  records[99].values = {{"images_per_s", 0}};  // a step that took no time
  const auto charts = run_charts(records);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0].title, "Speed");
  ASSERT_EQ(charts[0].series.size(), 2U);
  EXPECT_TRUE(charts[0].series[0].faint);
  const auto& smoothed = charts[0].series[1].points;
  ASSERT_EQ(smoothed.size(), 200U);
  EXPECT_NEAR(smoothed[199].second, 15, 1e-9) << "30 images and 10 each take 2 s + 2 * 1/3 s";
  EXPECT_NEAR(smoothed[99].second, 3 / (1.0 / 30 + 1.0 / 10 + 1.0 / 30), 1e-9);
}

TEST(Curves, OfAFewStepsHaveNoSmoothedSpeed) {
  const auto charts = run_charts({{"train", 1, 1, {{"images_per_s", 30}}}});
  ASSERT_EQ(charts.size(), 1U);
  ASSERT_EQ(charts[0].series.size(), 1U);
  EXPECT_FALSE(charts[0].series[0].faint);
}

/// The charts, each with its series.
std::vector<std::string> told(const std::vector<Chart>& charts) {
  std::vector<std::string> lines;
  for (const Chart& chart : charts) {
    lines.push_back(chart.title + ":");
    for (const Series& series : chart.series) lines.back() += " " + series.label;
  }
  return lines;
}

TEST(Curves, MetricsBeyondZeroToOneHaveChartsByTheirSize) {
  std::vector<MetricsRecord> records;
  for (int64_t step : {10, 20}) {
    const double falling = 100 / static_cast<double>(step);  // 10, 5
    records.push_back({"eval",
                       1,
                       step,
                       {{"perplexity", falling * 9},
                        {"acc", 0.5},
                        {"bleu", 100},
                        {"gain", -falling / 1000},
                        {"squared", falling * 1e6},
                        {"endless", INFINITY},
                        {"loss", 3},
                        {"samples", 100},
                        {"seconds", 100},
                        {"rank", 0}}});
  }
  EXPECT_EQ(told(run_charts(records)),
            (std::vector<std::string>{
                "Loss: evaluation", "Evaluation: acc", "Evaluation, up to 0.01: gain",
                "Evaluation, up to 1: endless", "Evaluation, up to 100: perplexity bleu",
                "Evaluation, up to 1e+07: squared"}));
}

TEST(Curves, LoggedValuesHaveChartsByTheirSizeBehindTheLoss) {
  std::vector<MetricsRecord> records;
  for (int64_t step : {1, 2}) {
    records.push_back({"train",
                       1,
                       step,
                       {{"loss", 3},
                        {"lr", 0.1},
                        {"images_per_s", 100},
                        {"grad_norm", 9},
                        {"box", 0.5},
                        {"penalty", -70},
                        {"shape", 0.25 * static_cast<double>(step)},
                        {"never", NAN}}});
  }
  records.push_back({"eval", 1, 2, {{"acc", 0.5}, {"perplexity", 9}}});
  const std::vector<std::string> logged = {"box", "penalty", "shape", "never", "absent"};
  const auto charts = run_charts(records, logged);
  EXPECT_EQ(told(charts),
            (std::vector<std::string>{"Loss: train", "Logged values, up to 1: box shape",
                                      "Logged values, up to 100: penalty", "Evaluation: acc",
                                      "Evaluation, up to 10: perplexity", "Learning rate: lr",
                                      "Speed: train"}));
  EXPECT_EQ(charts.at(1).series.at(1).points,
            (std::vector<std::pair<double, double>>{{1, 0.25}, {2, 0.5}}));
  EXPECT_EQ(run_charts(records).size(), 5U) << "without names there is none";
}

TEST(Curves, ManyLoggedValuesAreMeans) {
  std::vector<MetricsRecord> records;
  for (int64_t step = 1; step <= 200; ++step) {
    const double high = step == 150 ? NAN : step % 2 == 0 ? 3 : 1;
    records.push_back({"train", 1, step, {{"box", high}, {"shape", 0.25}}});
  }
  const auto charts = run_charts(records, {"box", "shape"});
  EXPECT_EQ(told(charts), (std::vector<std::string>{"Logged values, smoothed, up to 1: shape",
                                                    "Logged values, smoothed, up to 10: box"}));
  const auto& box = charts.at(1).series.at(0).points;
  ASSERT_EQ(box.size(), 200U);
  EXPECT_EQ(box[99].second, 2) << "of the last 4 steps";
  EXPECT_EQ(box[149].second, 5.0 / 3) << "of those that have a number";
}

TEST(Curves, LeavesOutWhatThereIsNot) {
  EXPECT_TRUE(run_charts({}).empty());
  const auto charts = run_charts({{"train", 1, 1, {{"loss", 2.0}}}});
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].series.size(), 1u);
}

TEST(Curves, WritesThePicture) {
  const TempFolder dir;
  {
    MetricsWriter writer(dir / "metrics.jsonl", 0);
    for (const MetricsRecord& record : example(50)) writer.write(record);
  }
  EXPECT_TRUE(write_curves(dir / "metrics.jsonl", dir / "result.svg", "small run"));
  EXPECT_TRUE(read_file(dir / "result.svg").starts_with("<svg "));
  { MetricsWriter writer(dir / "metrics.jsonl", 0); }
  EXPECT_FALSE(write_curves(dir / "metrics.jsonl", dir / "other.svg", "empty run"));
  EXPECT_FALSE(std::filesystem::exists(dir / "other.svg"));
  EXPECT_EQ(error_of([&] { write_curves(dir / "x", dir / "y", ""); }).code(), ErrorCode::kNotFound);
}

// 30 MiB, far more than a picture shows.
TEST(Curves, OfALongRunAreDrawnFromASample) {
  const TempFolder dir;
  std::string lines;
  constexpr int64_t kSteps = 200'000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const MetricsRecord record{"train",
                               1,
                               step,
                               {{"loss", 1.0 / static_cast<double>(step)}},
                               {{"host", std::string(100, 'h')}}};
    lines += encode_metrics(record) + "\n";
    if (step % 10'000 == 0) {
      lines += encode_metrics({"eval", 1, step, {{"acc", 0.5}}}) + "\n";
    }
  }
  write_file_atomically(dir / "m", lines + "no record\n");
  const auto records = sampled_metrics(dir / "m");
  std::vector<int64_t> steps;
  for (const auto& record : records) {
    if (record.kind == "train") steps.push_back(record.step);
  }
  EXPECT_EQ(records.size() - steps.size(), 20U) << "all evaluations, as there are few";
  EXPECT_GT(steps.size(), kMostSampled / 2 - 1);
  EXPECT_LE(steps.size(), kMostSampled);
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.back(), kSteps);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_TRUE(write_curves(dir / "m", dir / "result.svg", "long run"));
}

}  // namespace
}  // namespace lockstep
