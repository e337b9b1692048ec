#pragma once
// Takes what a loss gives to log_value().

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace lockstep::inline internal {

/// During its lifetime log_value() of this thread gives its numbers here. It lives as long as one
/// call of a loss.
class LoggedValues {
 public:
  /// For a step of training. `values` gets copies of the numbers in the order of `names`, undefined
  /// for those without one.
  LoggedValues(const std::vector<std::string>& names, std::vector<at::Tensor>& values);
  /// For an evaluation, which computes the loss, too: any name is taken, and its number dropped.
  LoggedValues();
  ~LoggedValues() { current_ = outer_; }
  LoggedValues(const LoggedValues&) = delete;
  LoggedValues& operator=(const LoggedValues&) = delete;

  /// That of this thread; null: no loss is being computed.
  static LoggedValues* current() { return current_; }

  /// Whether add() takes a number of this name.
  bool takes(const std::string& name) const;
  /// See log_value().
  void add(const std::string& name, const at::Tensor& value);

 private:
  const std::vector<std::string>* names_ = nullptr;
  std::vector<at::Tensor>* values_ = nullptr;
  LoggedValues* outer_;
  static thread_local LoggedValues* current_;
};

/// One number each, in double; NaN for undefined ones. Those of a device take one copy from that of
/// the first, and those of the CPU none.
std::vector<double> numbers_on_host(const at::Tensor& first, const std::vector<at::Tensor>& others);

/// Checks `names` for log_value(). `taken`: the other fields of a step in metrics.jsonl. Errors:
/// kInvalidArgument if a name is unfit, is there twice, or is one of `taken`.
void check_log_names(const std::vector<std::string>& names, const std::vector<std::string>& taken);

}  // namespace lockstep::inline internal
