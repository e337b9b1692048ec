#include "lockstep/named_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/counted.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {

Tensors::Tensors(std::initializer_list<Item> items) {
  for (const Item& item : items) add(item.name, item.tensor);
}

void Tensors::add(std::string name, at::Tensor tensor) {
  if (has(name)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("two tensors are named '{}'", name));
  }
  if (!name.empty()) {
    names_.resize(size());
    names_.push_back(std::move(name));
  }
  push_back(std::move(tensor));
}

const at::Tensor& Tensors::operator[](std::string_view name) const {
  if (const at::Tensor* found = find(name)) return *found;
  std::vector<std::string> known = names_;
  std::erase(known, "");
  if (empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no tensor is named '{}': the list is empty", name));
  }
  throw Error(ErrorCode::kInvalidArgument,
              known.empty()
                  ? fmt::format("no tensor is named '{}': the given ones have no names", name)
                  : fmt::format("no tensor is named '{}': there are {}{}", name,
                                fmt::join(known, ", "), did_you_mean(name, known)));
}

void Tensors::refuse(size_t place) const {
  const auto shown = static_cast<int64_t>(place);  // as it was written
  throw Error(ErrorCode::kInvalidArgument,
              empty() ? fmt::format("there is no tensor [{}]: the list is empty", shown)
                      : fmt::format("there is no tensor [{}]: the list has {}, [0] to [{}]{}",
                                    shown, counted(std::ssize(*this), "tensor"), size() - 1,
                                    shown < 0 ? "; use back() for the last one" : ""));
}

std::vector<std::string> Tensors::names() const {
  std::vector<std::string> all = names_;
  all.resize(size());
  return all;
}

const at::Tensor* Tensors::find(std::string_view name) const {
  const auto place = std::find(names_.begin(), names_.end(), name);
  return name.empty() || place == names_.end() ? nullptr : data() + (place - names_.begin());
}

}  // namespace lockstep
