#include "lockstep/train/task/logged_values.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/registry.h"

namespace lockstep::inline internal {

thread_local LoggedValues* LoggedValues::current_ = nullptr;

LoggedValues::LoggedValues(const std::vector<std::string>& names, std::vector<at::Tensor>& values)
    : names_(&names), values_(&values), outer_(current_) {
  values.assign(names.size(), at::Tensor());
  current_ = this;
}

LoggedValues::LoggedValues() : outer_(current_) {
  current_ = this;
}

bool LoggedValues::takes(const std::string& name) const {
  return names_ == nullptr || std::find(names_->begin(), names_->end(), name) != names_->end();
}

void LoggedValues::add(const std::string& name, const at::Tensor& value) {
  if (value.numel() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("log_value('{}'): {} numbers, not one", name, value.numel()));
  }
  if (names_ == nullptr) return;
  const auto found = std::find(names_->begin(), names_->end(), name);
  if (found == names_->end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("log_value('{}'): neither Recipe::log_names nor the loss has this "
                            "name{}",
                            name, did_you_mean(name, *names_)));
  }
  (*values_)[static_cast<size_t>(found - names_->begin())] = value.detach().clone();
}

std::vector<double> numbers_on_host(const at::Tensor& first,
                                    const std::vector<at::Tensor>& others) {
  std::vector<double> numbers(1 + others.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<at::Tensor> of_device;
  std::vector<size_t> places;
  const auto add = [&](size_t place, const at::Tensor& one) {
    if (!one.defined()) return;
    if (one.is_cpu()) {
      numbers[place] = one.item<double>();
      return;
    }
    of_device.push_back(one.detach().reshape({}).to(first.device(), at::kDouble));
    places.push_back(place);
  };
  add(0, first);
  for (size_t i = 0; i < others.size(); ++i) add(i + 1, others[i]);
  if (of_device.empty()) return numbers;
  const at::Tensor stacked = at::stack(of_device).cpu();
  const auto* const copied = stacked.data_ptr<double>();
  for (size_t i = 0; i < places.size(); ++i) numbers[places[i]] = copied[i];
  return numbers;
}

void check_log_names(const std::vector<std::string>& names, const std::vector<std::string>& taken) {
  for (const auto& name : names) {
    const char* fault = !is_plain_name(name) ? "must be of letters, digits, '_', '-' and '.'"
                        : std::count(names.begin(), names.end(), name) > 1 ? "is given twice"
                        : std::count(taken.begin(), taken.end(), name) > 0
                            ? "is another field of metrics.jsonl"
                            : nullptr;
    if (fault == nullptr) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the name '{}' of a logged value {}", name, fault));
  }
}

}  // namespace lockstep::inline internal

namespace lockstep {

void log_value(const std::string& name, const at::Tensor& value) {
  if (LoggedValues* const taker = LoggedValues::current()) return taker->add(name, value);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("log_value('{}'): no loss is being computed in this thread", name));
}

}  // namespace lockstep
