#include "lockstep/checkpoint/pickle_stack.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxPickleValues = 2'000'000;
constexpr size_t kMaxNameBytes = 200;
constexpr auto kNoValue = "takes a value that is not there";

}  // namespace

void PickleStack::push(PickleValue value) {
  if (pickle_.values.size() >= kMaxPickleValues) cursor_.corrupt("has too many values");
  pickle_.values.push_back(std::move(value));
  stack_.push_back(static_cast<uint32_t>(pickle_.values.size() - 1));
}

uint32_t PickleStack::pop() {
  if (stack_.size() <= floor()) cursor_.corrupt(kNoValue);
  const uint32_t value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<uint32_t> PickleStack::pop_count(size_t count) {
  if (stack_.size() - floor() < count) cursor_.corrupt(kNoValue);
  const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<uint32_t> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  return items;
}

PickleValue& PickleStack::top() {
  if (stack_.size() <= floor()) cursor_.corrupt(kNoValue);
  return pickle_.values[stack_.back()];
}

std::vector<uint32_t> PickleStack::pop_mark() {
  if (marks_.empty()) cursor_.corrupt("takes a mark that is not there");
  const size_t from = marks_.back();
  std::vector<uint32_t> items = pop_count(stack_.size() - from);
  marks_.pop_back();
  return items;
}

void PickleStack::put(uint64_t key) {
  top();  // checks that there is one
  memo_[key] = stack_.back();
}

void PickleStack::get(uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) cursor_.corrupt("reads a value that it has not stored");
  stack_.push_back(found->second);
}

void PickleStack::add(const std::vector<uint32_t>& items, PickleValue::Kind kind) {
  PickleValue& target = top();
  if (kind == PickleValue::Kind::kDict && items.size() % 2 != 0) {
    cursor_.corrupt("has a key without a value");
  }
  if (target.kind == kind) target.items.insert(target.items.end(), items.begin(), items.end());
}

void PickleStack::call(uint32_t callee, uint32_t arguments) {
  using Kind = PickleValue::Kind;
  const PickleValue& function = pickle_.values[callee];
  const std::vector<uint32_t>& given = pickle_.values[arguments].items;
  std::optional<std::vector<uint32_t>> entries;
  if (function.kind == Kind::kGlobal && function.text == "collections OrderedDict") {
    entries = given.empty() ? std::vector<uint32_t>() : pairs_in(given[0]);
  }
  if (entries) {
    push({Kind::kDict, 0, {}, std::move(*entries)});
  } else {
    push({Kind::kCall, 0, {}, {callee, arguments}});
  }
}

std::optional<std::vector<uint32_t>> PickleStack::pairs_in(uint32_t list) {
  if (pickle_.values[list].kind != PickleValue::Kind::kList) return std::nullopt;
  std::vector<uint32_t> items;
  for (const uint32_t index : pickle_.values[list].items) {
    const PickleValue& pair = pickle_.values[index];
    copied_ += 2;  // one stored list could be looked at any number of times
    if (copied_ > kMaxPickleValues) cursor_.corrupt("has too many values");
    if (pair.items.size() != 2 || pair.kind == PickleValue::Kind::kCall) return std::nullopt;
    items.insert(items.end(), pair.items.begin(), pair.items.end());
  }
  return items;
}

const std::string& PickleStack::name_of(uint32_t value) const {
  const PickleValue& name = pickle_.values[value];
  if (name.kind != PickleValue::Kind::kText || name.text.size() > kMaxNameBytes) {
    cursor_.corrupt("has a class without a name");
  }
  return name.text;
}

Pickle PickleStack::finish(uint64_t bytes) {
  pickle_.top = pop();
  pickle_.bytes = bytes;
  return std::move(pickle_);
}

}  // namespace lockstep::inline internal
