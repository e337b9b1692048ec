#include "lockstep/data/pictures/classes.h"

#include <fmt/format.h>

#include <charconv>

#include "lockstep/base/text.h"

namespace lockstep {

ClassNumbers::ClassNumbers(const PictureClasses& classes) : classes_(classes) {
  for (size_t i = 0; i < classes.names.size(); ++i) {
    by_name_.emplace(classes.names[i], static_cast<int64_t>(i));
  }
}

int64_t ClassNumbers::of_name(const std::string& name) const {
  if (classes_.names.empty()) return of_number(name);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

int64_t ClassNumbers::of_number(std::string_view text) const {
  int64_t number = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_whole = error == std::errc() && stop == end;
  return is_whole && number >= 0 && number < classes_.count ? number : -1;
}

std::string ClassNumbers::no_class(const std::string& name) const {
  if (classes_.names.empty()) {
    return fmt::format("has no class '{}'; allowed: 0 to {}", name, classes_.count - 1);
  }
  return fmt::format("has no class '{}'{}", name, did_you_mean(name, classes_.names));
}

}  // namespace lockstep
