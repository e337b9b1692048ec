#include "lockstep/predict/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kRequest = std::chrono::minutes(5);  // far above any request to the store

std::string key_of(size_t picture) {
  return "predict/" + std::to_string(picture);
}

/// "+LINE" or "-REASON", the usable regions and each fault, with zero bytes between, which no text
/// has.
std::string packed(const Outcome& outcome) {
  std::string value = (outcome.good ? "+" : "-") + outcome.text;
  value += '\0' + std::to_string(outcome.usable_regions);
  for (const auto& fault : outcome.faults) value += '\0' + fault;
  return value;
}

Outcome unpacked(const std::string& value) {
  Outcome outcome{value.starts_with('+'), ""};
  std::istringstream parts(value.substr(1));
  std::getline(parts, outcome.text, '\0');
  std::string usable_regions;
  std::getline(parts, usable_regions, '\0');
  outcome.usable_regions = std::stoul(usable_regions);
  for (std::string fault; std::getline(parts, fault, '\0');) outcome.faults.push_back(fault);
  return outcome;
}

std::string text_of(const std::string& label) {
  using nlohmann::json;
  return json(label).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// JSON has only finite numbers.
std::string number_of(float probability) {
  return std::isfinite(probability) ? fmt::format("{:.6f}", probability) : "null";
}

}  // namespace

Outcomes::Outcomes(const World& world, size_t pictures, std::function<void(const Outcome&)> found)
    : world_(world), pictures_(pictures), found_(std::move(found)) {
  if (world.rank != 0) return;
  for (size_t rank = 0; rank < static_cast<size_t>(world.size); ++rank) next_.push_back(rank);
}

void Outcomes::add(size_t picture, Outcome outcome) {
  if (world_.rank != 0) {
    world_.store->set(key_of(picture), packed(outcome), Deadline::after(kRequest));
    return;
  }
  keep(picture, std::move(outcome));
  look();
}

void Outcomes::take(size_t picture, const std::string& value) {
  world_.store->erase(key_of(picture), Deadline::after(kRequest));
  keep(picture, unpacked(value));
}

void Outcomes::keep(size_t picture, Outcome outcome) {
  early_.emplace(picture, std::move(outcome));
  for (auto first = early_.begin(); first != early_.end() && first->first == handed_on_;
       first = early_.erase(first), ++handed_on_) {
    found_(first->second);
  }
}

void Outcomes::look() {
  for (size_t rank = 1; rank < next_.size(); ++rank) {
    for (size_t& next = next_[rank]; next < pictures_; next += next_.size()) {
      const auto value = world_.store->try_get(key_of(next), Deadline::after(kRequest));
      if (!value) break;
      take(next, *value);
    }
  }
}

void Outcomes::finish(std::chrono::milliseconds patience) {
  for (size_t rank = 1; rank < next_.size(); ++rank) {
    for (size_t& next = next_[rank]; next < pictures_; next += next_.size()) {
      std::string value;
      try {
        value = world_.store->get(key_of(next), Deadline::after(patience));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kTimeout) throw;
        throw Error(
            ErrorCode::kTimeout,
            fmt::format("rank {} has given no result for picture {} of {} in {} s", rank, next + 1,
                        pictures_,
                        std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
      }
      take(next, value);
      look();
    }
  }
}

std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names, size_t most) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto shown = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), shown, order.end(), [&](size_t a, size_t b) {
    const float left = probabilities[a], right = probabilities[b];
    if (std::isnan(left) != std::isnan(right)) return std::isnan(right);  // NaN comes last
    return left > right || (!(left < right) && a < b);
  });
  std::string list;
  for (auto at = order.begin(); at != shown; ++at) {
    list += fmt::format(R"({}{{"label": {}, "class": {}, "probability": {}}})",
                        list.empty() ? "" : ", ", text_of(names.at(*at)), *at,
                        number_of(probabilities[*at]));
  }
  return without_controls(file) + "\t[" + list + "]";
}

bool has_no_number(const std::string& class_line) {
  constexpr std::string_view kNull = R"("probability": null)";  // a label's quotes are escaped
  return class_line.find(kNull, class_line.rfind('\t') + 1) != std::string::npos;
}

std::string class_table_head(size_t most) {
  std::string head = "path,class,score";
  for (size_t i = 2; i <= most; ++i) head += fmt::format(",class_{0},score_{0}", i);
  return head;
}

std::string class_table_row(const std::string& path, const std::string& class_line) {
  std::string row = csv_cell(path);
  for (const auto& one : nlohmann::json::parse(class_line.substr(class_line.rfind('\t') + 1))) {
    const auto& score = one.at("probability");
    row += fmt::format(",{},{}", csv_cell(one.at("label").get<std::string>()),
                       score.is_null() ? "nan" : fmt::format("{:.6f}", score.get<double>()));
  }
  return row;
}

}  // namespace lockstep::inline internal
