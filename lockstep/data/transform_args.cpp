#include "lockstep/data/transform_args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

const TransformSpec kNothingGiven;

/// Rounded: 4/3 as 1.333.
std::string shown_number(double value) {
  return fmt::format("{:.4g}", value);
}

std::string shown_numbers(const std::vector<double>& values) {
  if (values.empty()) return "required";
  std::vector<std::string> texts(values.size());
  std::transform(values.begin(), values.end(), texts.begin(), shown_number);
  return texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace

TransformArgs::TransformArgs(std::vector<TransformArgument>& described)
    : spec_(kNothingGiven), described_(&described) {}

void TransformArgs::fail(const std::string& key, const std::string& must) const {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} {}", spec_.name, key, must));
}

const std::vector<double>* TransformArgs::take(const TransformArgument& argument) {
  known_.push_back(argument.key);
  if (described_ != nullptr) described_->push_back(argument);
  const auto found = spec_.args.find(argument.key);
  return found == spec_.args.end() ? nullptr : &found->second;
}

void TransformArgs::number(const std::string& key, double& value, double least, double most,
                           const std::string& about, const std::string& kind) {
  const auto from_to = fmt::format("a number from {} to {}", least, most);
  const auto* given = take({key, kind.empty() ? from_to : kind, shown_number(value), about});
  if (given == nullptr) return;
  if (given->size() != 1) fail(key, "must be one number");
  value = given->front();
  if (value >= least && value <= most) return;
  fail(key, fmt::format("is {}; it must be in [{}, {}]", value, least, most));
}

void TransformArgs::whole(const std::string& key, int64_t& value, int64_t least,
                          const std::string& about) {
  const auto* given = take({key, "a whole number", std::to_string(value), about});
  if (given == nullptr) return;
  if (given->size() != 1) fail(key, "must be one number");
  const double number = given->front();
  if (!(number >= static_cast<double>(least) && number <= 1e6) || number != std::floor(number)) {
    fail(key, fmt::format("is {}; it must be a whole number from {}", number, least));
  }
  value = static_cast<int64_t>(number);
}

void TransformArgs::list(const std::string& key, std::vector<double>& values,
                         const std::string& kind, const std::string& about,
                         const std::string& fallback) {
  const auto shown = fallback.empty() ? shown_numbers(values) : fallback;
  if (const auto* given = take({key, kind, shown, about})) values = *given;
}

void TransformArgs::range(const std::string& key, std::pair<double, double>& value, double least,
                          const std::string& about) {
  const auto shown = shown_numbers({value.first, value.second});
  const auto* given = take({key, "two numbers", shown, about});
  if (given == nullptr) return;
  if (given->size() != 2 || !((*given)[0] >= least && (*given)[0] <= (*given)[1])) {
    fail(key, fmt::format("must be two numbers from {}, the larger one last", least));
  }
  value = {(*given)[0], (*given)[1]};
}

void TransformArgs::finish() const {
  for (const auto& [key, unused] : spec_.args) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: unknown argument '{}'{} (known: {})", spec_.name, key,
                            did_you_mean(key, known_), fmt::join(known_, ", ")));
  }
}

}  // namespace lockstep::inline internal
