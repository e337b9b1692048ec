#include "lockstep/ocr/metrics/rec_metric.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

constexpr double kUnit = 1.0 / (1 << 30);

template <class Keep>
std::string kept(const std::string& text, Keep keep) {
  std::string result;
  for (const std::string_view one : characters(text)) {
    if (keep(one)) result += one;
  }
  return result;
}

// UTF-8 strings of equal length sort like their characters.
bool within(std::string_view one, std::string_view first, std::string_view last) {
  return one.size() == first.size() && one >= first && one <= last;
}

bool is_no_symbol(std::string_view one) {
  return within(one, "A", "Z") || within(one, "a", "z") || within(one, "0", "9") || one == "^" ||
         within(one, "\u4e00", "\u9fa5");
}

}  // namespace

RecCounts& RecCounts::operator+=(const RecCounts& other) {
  words += other.words;
  correct += other.correct;
  distance += other.distance;
  return *this;
}

RecScorer::RecScorer(const RecMetricOptions& options) : options_(options) {
  if (!options.filter_ood) return;
  CharacterOptions characters;
  characters.character_dict_path = options.character_dict_path;
  dictionary_.emplace(characters);
}

RecScore RecScorer::score(std::string_view predicted, std::string_view truth) const {
  const auto prepare = [this](std::string_view raw, bool known_only) {
    std::string text(raw);
    if (options_.ignore_space) std::erase(text, ' ');
    if (options_.lower) text = to_lower(text);
    if (known_only) {
      text = kept(text, [&](std::string_view one) { return dictionary_->contains(one); });
    }
    return options_.ignore_symbol ? kept(text, is_no_symbol) : text;
  };
  RecScore score;
  score.predicted = prepare(predicted, false);
  score.truth = prepare(truth, dictionary_.has_value());
  const double distance = normalised_edit_distance(score.predicted, score.truth);
  score.counts = {.words = 1,
                  .correct = score.predicted == score.truth ? 1.0 : 0.0,
                  .distance = std::round(distance / kUnit) * kUnit};
  return score;
}

RecFigures rec_figures(const RecCounts& counts) {
  if (counts.words == 0) return {};
  return {.acc = counts.correct / counts.words,
          .norm_edit_distance = 1 - counts.distance / counts.words};
}

double normalised_edit_distance(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> from = characters(a);
  const std::vector<std::string_view> to = characters(b);
  if (from.empty() && to.empty()) return 0;
  std::vector<size_t> row(to.size() + 1);  // distances of from[0..i) to each prefix of `to`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return static_cast<double>(row.back()) / static_cast<double>(std::max(from.size(), to.size()));
}

}  // namespace lockstep::ocr
