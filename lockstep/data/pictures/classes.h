#pragma once
// The number of a class by its name.

#include <string>
#include <string_view>
#include <unordered_map>

#include "lockstep/data/pictures/index.h"

namespace lockstep {

class ClassNumbers {
 public:
  explicit ClassNumbers(const PictureClasses& classes);

  /// By name; of classes without names by its number. -1: there is none.
  int64_t of_name(const std::string& name) const;
  /// A whole number in [0, count); else -1.
  int64_t of_number(std::string_view text) const;
  /// "has no class 'cta', did you mean 'cat'?"
  std::string no_class(const std::string& name) const;

 private:
  PictureClasses classes_;
  std::unordered_map<std::string, int64_t> by_name_;
};

}  // namespace lockstep
