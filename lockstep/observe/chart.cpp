#include "lockstep/observe/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

// All lengths in points.
constexpr double kWidth = 900;
constexpr double kChartHeight = 300;
constexpr double kTitleHeight = 48;
constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 44;
constexpr double kBottom = 48;
constexpr size_t kMaxPoints = 1500;  // more than two per pixel add bytes, but no detail

// Distinct for every kind of colour vision. Source: Okabe & Ito, "Color Universal Design", 2008.
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                 "#cc79a7", "#e69f00", "#56b4e9"};

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();

  void take(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  bool empty() const { return lo > hi; }
};

bool finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

/// The range of one coordinate of a chart's points.
template <class Coordinate>
Range range_of(const Chart& chart, const Coordinate& coordinate) {
  Range range;
  for (const Series& series : chart.series) {
    for (const auto& point : series.points) {
      if (finite(point)) range.take(coordinate(point));
    }
  }
  return range;
}

int exponent(double value) {
  return static_cast<int>(std::floor(std::log10(value) + 1e-9));
}

/// A tick's text with just enough digits for its distance to the next one. Long ones are written
/// as 1.2e6, because seven digits reach into the axis' label.
std::string tick_text(double value, double distance) {
  const double size = std::abs(value);
  if (size < distance / 2) return "0";
  if (distance >= 1e-4 && size < 999'999.5) {
    const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(distance) - 1e-9)));
    return fmt::format("{:.{}f}", value, digits);
  }
  const int digits = std::clamp(exponent(size) - exponent(distance) + 1, 1, 15);
  std::string text = fmt::format("{:.{}g}", value, digits);
  const size_t power = text.find("e+");
  if (power != std::string::npos) text.erase(power + 1, text[power + 2] == '0' ? 2 : 1);
  return text;
}

using Names = std::vector<std::pair<double, std::string>>;

Names numbered(const std::vector<double>& ticks) {
  Names names;
  for (const double tick : ticks) names.emplace_back(tick, tick_text(tick, ticks[1] - ticks[0]));
  return names;
}

/// Draws one chart. The top left corner of its frame lies at (kLeft, top).
class Drawing {
 public:
  Drawing(const Chart& chart, Range x, double top, std::string& out)
      : chart_(chart), top_(top), out_(out), x_(x) {
    y_ = range_of(chart, [](const auto& point) { return point.second; });
    if (x_.empty()) x_ = {0, 1};
    if (y_.empty()) y_ = {0, 1};
    const auto x_ticks = axis_ticks(x_.lo, x_.hi, 9);
    y_names_ = chart.y_names;
    if (y_names_.empty()) y_names_ = numbered(axis_ticks(y_.lo, y_.hi, 6));
    y_ = {y_names_.front().first, y_names_.back().first};
    if (x_.lo == x_.hi) x_ = {x_ticks.front(), x_ticks.back()};
    x_names_ = chart.x_names.empty() ? numbered(x_ticks) : chart.x_names;
    std::erase_if(x_names_,
                  [this](const auto& tick) { return tick.first < x_.lo || tick.first > x_.hi; });
  }

  void draw() {
    text(kLeft, top_ - 16, "start", "font-size=\"15\" font-weight=\"600\"", chart_.title);
    axes();
    for (size_t i = 0; i < chart_.series.size(); ++i) curve(chart_.series[i], colour(i));
    legend();
  }

 private:
  double plot_height() const { return kChartHeight - kTop - kBottom; }
  double x_at(double x) const {
    return kLeft + (x - x_.lo) / (x_.hi - x_.lo) * (kWidth - kLeft - kRight);
  }
  double y_at(double y) const {
    return top_ + plot_height() - (y - y_.lo) / (y_.hi - y_.lo) * plot_height();
  }

  /// A faint series has the colour of the next one, the mean of the same values.
  static const char* colour(size_t index, const std::vector<Series>& series) {
    size_t number = 0;
    for (size_t i = 0; i < index; ++i) number += series[i].faint ? 0 : 1;
    return kColours[number % kColours.size()];
  }
  const char* colour(size_t index) const { return colour(index, chart_.series); }

  void text(double x, double y, const char* anchor, const char* style, const std::string& words) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                        anchor, style, xml_text(words));
  }

  void line(double x1, double y1, double x2, double y2, const char* stroke) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, stroke);
  }

  void axes() {
    constexpr const char* kSmall = "font-size=\"12\" fill=\"#555\"";
    const double bottom = top_ + plot_height();
    for (const auto& [tick, name] : y_names_) {
      line(kLeft, y_at(tick), kWidth - kRight, y_at(tick), "#e6e6e6");
      text(kLeft - 8, y_at(tick) + 4, "end", kSmall, name);
    }
    for (const auto& [tick, name] : x_names_) {
      line(x_at(tick), bottom, x_at(tick), bottom + 5, "#888");
      text(x_at(tick), bottom + 19, "middle", kSmall, name);
    }
    line(kLeft, bottom, kWidth - kRight, bottom, "#888");
    text((kLeft + kWidth - kRight) / 2, bottom + 38, "middle", kSmall, chart_.x_label);
    out_ += fmt::format(
        "<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
        "{}>{}</text>\n",
        top_ + plot_height() / 2, kSmall, xml_text(chart_.y_label));
  }

  void curve(const Series& series, const char* stroke) {
    std::string path;
    std::string dots;
    const size_t stride = std::max<size_t>(1, series.points.size() / kMaxPoints);
    bool pen_down = false;
    for (size_t i = 0; i < series.points.size(); ++i) {
      const auto& point = series.points[i];
      if (!finite(point)) {
        pen_down = false;
        continue;
      }
      if (i % stride != 0 && i + 1 != series.points.size()) continue;
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x_at(point.first),
                          y_at(point.second));
      pen_down = true;
      if (series.markers) {
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n",
                            x_at(point.first), y_at(point.second), stroke);
      }
    }
    if (path.empty()) return;
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" "
        "stroke-linejoin=\"round\"/>\n",
        path, stroke, series.faint ? 1 : 2, series.faint ? 0.3 : 1);
    out_ += dots;
  }

  /// Draws the legend on the title's line, from the right. It names the series that there is room
  /// for, one at least, and counts the others.
  void legend() {
    constexpr const char* kStyle = "font-size=\"12\" fill=\"#333\"";
    constexpr double kCountWidth = 110;  // "and 1000 more"
    const size_t all = chart_.series.size();
    double room = kWidth - kLeft - kRight - 9.0 * static_cast<double>(chart_.title.size());
    size_t named = 0;
    while (named < all) {
      room -= label_width(chart_.series[named]) + 40;
      if (named > 0 && room < (named + 1 < all ? kCountWidth : 0)) break;
      ++named;
    }
    double x = kWidth - kRight;
    if (named < all) {
      text(x, top_ - 16, "end", kStyle, fmt::format("and {} more", all - named));
      x -= kCountWidth;
    }
    for (size_t i = named; i-- > 0;) {
      const Series& series = chart_.series[i];
      text(x, top_ - 16, "end", kStyle, series.label);
      x -= label_width(series);
      out_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
          "stroke-width=\"{}\" stroke-opacity=\"{}\"/>\n",
          x - 22, top_ - 20, x, top_ - 20, colour(i), series.faint ? 2 : 3, series.faint ? 0.4 : 1);
      x -= 40;
    }
  }

  static double label_width(const Series& series) {
    return 7.0 * static_cast<double>(series.label.size()) + 8;
  }

  const Chart& chart_;
  double top_;
  std::string& out_;
  Range x_;
  Range y_;
  Names x_names_;
  Names y_names_;
};

}  // namespace

std::vector<double> axis_ticks(double lo, double hi, int wanted) {
  if (hi - lo < 1e-12 * std::max(std::abs(lo), std::abs(hi)) || lo == hi) {
    const double half = lo == 0 ? 1 : std::abs(lo) / 2;
    lo -= half;
    hi += half;
  }
  const double rough = (hi - lo) / std::max(wanted - 1, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(lo / step + 1e-9);
  for (double i = first; ticks.empty() || ticks.back() < hi - step * 1e-9; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::vector<std::pair<double, double>> moving_average(
    const std::vector<std::pair<double, double>>& points, int window) {
  std::vector<std::pair<double, double>> means;
  double sum = 0;
  size_t count = 0;
  size_t oldest = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(points[i].second)) {
      sum += points[i].second;
      ++count;
    }
    if (i - oldest + 1 > static_cast<size_t>(window)) {
      if (std::isfinite(points[oldest].second)) {
        sum -= points[oldest].second;
        --count;
      }
      ++oldest;
    }
    if (count > 0) means.emplace_back(points[i].first, sum / static_cast<double>(count));
  }
  return means;
}

std::string render_charts(const std::string& title, const std::vector<Chart>& charts) {
  const double height = kTitleHeight + kChartHeight * static_cast<double>(charts.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{2:.0f}\" y=\"32\" font-size=\"19\" font-weight=\"700\">{3}</text>\n",
      kWidth, height, kLeft, xml_text(title));
  Range x;  // one for all, so that x positions match between the charts
  for (const Chart& chart : charts) {
    const Range own = range_of(chart, [](const auto& point) { return point.first; });
    if (own.empty()) continue;
    x.take(own.lo);
    x.take(own.hi);
  }
  double top = kTitleHeight + kTop;
  for (const Chart& chart : charts) {
    Drawing(chart, x, top, out).draw();
    top += kChartHeight;
  }
  return out + "</svg>\n";
}

}  // namespace lockstep::inline internal
