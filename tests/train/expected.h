#pragma once
// Numbers of another library, from a file beside the tests that a script of its name writes.

#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"

namespace lockstep::inline internal {

inline nlohmann::json expected_in(const std::string& file) {
  return nlohmann::json::parse(
      read_file(env_or("LOCKSTEP_SOURCE_DIR", ".") + "/tests/train/" + file));
}

/// (rows, columns), float64.
inline at::Tensor matrix_of(const nlohmann::json& rows) {
  std::vector<double> all;
  for (const auto& row : rows) {
    for (const auto& number : row) all.push_back(number.get<double>());
  }
  return at::tensor(all, at::kDouble).view({static_cast<int64_t>(rows.size()), -1});
}

inline at::Tensor labels_of(const nlohmann::json& labels) {
  return at::tensor(labels.get<std::vector<int64_t>>(), at::kLong);
}

}  // namespace lockstep::inline internal
