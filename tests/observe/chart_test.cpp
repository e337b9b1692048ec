#include "lockstep/observe/chart.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

using Ticks = std::vector<double>;
using Points = std::vector<std::pair<double, double>>;

void expect_near(const Ticks& ticks, const Ticks& wanted) {
  ASSERT_EQ(ticks.size(), wanted.size());
  for (size_t i = 0; i < ticks.size(); ++i) EXPECT_NEAR(ticks[i], wanted[i], 1e-9) << i;
}

size_t count(const std::string& text, const std::string& part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

TEST(AxisTicks, AreRoundAndCover) {
  expect_near(axis_ticks(0, 1, 6), {0, 0.2, 0.4, 0.6, 0.8, 1});
  expect_near(axis_ticks(0.13, 2.31, 5), {0, 1, 2, 3});
  expect_near(axis_ticks(1, 200, 5), {0, 50, 100, 150, 200});
  expect_near(axis_ticks(-3, 3, 4), {-4, -2, 0, 2, 4});
}

TEST(AxisTicks, HoldForAnyRange) {
  for (const double lo : {-1e9, -1.0, 0.0, 1e-12, 0.3, 7e15}) {
    for (const double width : {0.0, 1e-9, 0.5, 3.0, 1e12}) {
      const Ticks ticks = axis_ticks(lo, lo + width, 5);
      ASSERT_GE(ticks.size(), 2u) << lo << " " << width;
      EXPECT_LE(ticks.size(), 12u) << lo << " " << width;
      const double slack = (ticks[1] - ticks[0]) * 1e-6;
      EXPECT_LE(ticks.front(), lo + slack) << width;
      EXPECT_GE(ticks.back(), lo + width - slack) << lo;
    }
  }
}

TEST(MovingAverage, IsTrailing) {
  const Points points = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  EXPECT_EQ(moving_average(points, 2), (Points{{1, 1}, {2, 1.5}, {3, 2.5}, {4, 3.5}}));
  EXPECT_EQ(moving_average(points, 1), points);
  EXPECT_TRUE(moving_average({}, 3).empty());
}

TEST(MovingAverage, SkipsWhatIsNoNumber) {
  const Points points = {{1, 1}, {2, std::nan("")}, {3, 3}};
  EXPECT_EQ(moving_average(points, 2), (Points{{1, 1}, {2, 1}, {3, 3}}));
}

TEST(RenderCharts, DrawsTitlesAxesLegendAndCurves) {
  const Chart chart{
      "Loss & <co>",
      "step",
      "loss",
      {{"train", {{0, 1}, {10, 0.5}}, false, false}, {"eval", {{10, 0.6}}, true, false}}};
  const std::string svg = render_charts("run", {chart, chart});
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 20);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "<path "), 4u);
  EXPECT_EQ(count(svg, "<circle "), 2u);
  EXPECT_EQ(count(svg, ">Loss &amp; &lt;co&gt;<"), 2u);
  EXPECT_EQ(count(svg, ">eval<"), 2u);
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "inf"), 0u);
}

TEST(RenderCharts, GapsWhereNothingIsANumber) {
  const Chart chart{"x", "", "", {{"a", {{0, 1}, {1, 2}, {2, NAN}, {3, 1}, {4, INFINITY}}}}};
  const std::string svg = render_charts("run", {chart});
  const size_t path = svg.find("<path d=\"") + 9;
  EXPECT_EQ(count(svg.substr(path, svg.find('"', path) - path), "M"), 2u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

TEST(RenderCharts, TicksCanHaveNames) {
  Chart chart;
  chart.series.push_back({.label = "a", .points = {{16, 1}, {20, 2}}});
  chart.x_names = {{16, "64 KiB"}, {20, "1 MiB"}};
  const std::string svg = render_charts("t", {chart});
  EXPECT_EQ(count(svg, ">64 KiB</text>"), 1u);
  EXPECT_EQ(count(svg, ">1 MiB</text>"), 1u);
  EXPECT_EQ(count(svg, ">18</text>"), 0u);
}

TEST(RenderCharts, LargeTicksAreShortAndDiffer) {
  const auto svg = [](double lo, double hi) {
    return render_charts("t", {{"x", "", "", {{"a", {{0, lo}, {1, hi}}}}}});
  };
  const std::string wide = svg(0, 2e6);
  for (const char* tick : {">0<", ">500000<", ">1e6<", ">1.5e6<", ">2e6<"}) {
    EXPECT_EQ(count(wide, std::string(tick) + "/text>"), tick == std::string(">0<") ? 2U : 1U);
  }
  const std::string narrow = svg(20'000'000, 20'050'000);
  EXPECT_EQ(count(narrow, ">2e7</text>"), 1U);
  EXPECT_EQ(count(narrow, ">2.001e7</text>"), 1U);
  EXPECT_EQ(count(svg(0.5, 0.50005), ">0.50001</text>"), 1U);
}

TEST(RenderCharts, TheLegendCountsWhatItHasNoRoomFor) {
  Chart chart{"Evaluation", "step", "value"};
  for (int i = 0; i < 100; ++i) {
    chart.series.push_back({.label = "class", .points = {{0, i}, {1, i}}});
  }
  const std::string svg = render_charts("t", {chart});
  const size_t named = count(svg, ">class</text>");
  EXPECT_GT(named, 5U);
  EXPECT_LT(named, 9U) << "each takes 83 of 804 points, and the title is there, too";
  EXPECT_EQ(count(svg, ">and " + std::to_string(100 - named) + " more</text>"), 1U);
  EXPECT_EQ(count(svg, "<path "), 100U);
  chart.series.resize(named);
  EXPECT_EQ(count(render_charts("t", {chart}), " more<"), 0U);
}

TEST(RenderCharts, EmptyAndSinglePoint) {
  for (const Points& points : {Points{}, Points{{5, 5}}, Points{{1, 0}, {2, 0}}}) {
    const std::string svg = render_charts("run", {{"x", "", "", {{"a", points}}}});
    EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0u);
  }
}

TEST(RenderCharts, ManyPointsStaySmall) {
  Series series{"a", {}};
  for (int i = 0; i < 1'000'000; ++i) series.points.emplace_back(i, std::sin(i));
  EXPECT_LT(render_charts("run", {{"x", "", "", {series}}}).size(), 100'000u);
}

}  // namespace
}  // namespace lockstep
