#include "lockstep/world/detect/host_list.h"

#include <fmt/format.h>

#include <cstdint>

#include "lockstep/base/env.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// A name: text, bracket, text, bracket, ..., text. A bracket holds its numbers as text.
struct HostPattern {
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> brackets;  ///< One fewer than texts.
};

[[noreturn]] void refuse(std::string_view item, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("host list: '{}': {}", item, why));
}

bool is_separator(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

uint64_t to_number(std::string_view text, std::string_view item) {
  const auto number = as_number<uint64_t>(text);
  if (!number) refuse(item, fmt::format("'{}' is not a number; write [LO-HI,...]", text));
  return *number;
}

/// "LO", "LO-" and "LO-HI".
void append_range(std::string_view range, std::string_view item, std::vector<std::string>* out) {
  const size_t dash = range.find('-');
  const auto first = range.substr(0, dash);
  if (first.size() > 32) refuse(item.substr(0, 40), "number with more than 32 digits");
  const uint64_t lo = to_number(first, item);
  uint64_t hi = lo;
  if (dash != std::string_view::npos && dash + 1 < range.size())
    hi = to_number(range.substr(dash + 1), item);
  if (hi < lo) refuse(item, fmt::format("range {} runs backwards", range));
  if (hi - lo >= kMaxHostsOfItem || out->size() + (hi - lo) >= kMaxHostsOfItem)
    refuse(item, fmt::format("more than {} hosts", kMaxHostsOfItem));
  for (uint64_t i = 0; i <= hi - lo; ++i)
    out->push_back(fmt::format("{:0{}}", lo + i, first.size()));
}

std::vector<std::string> parse_bracket(std::string_view inside, std::string_view item) {
  std::vector<std::string> numbers;
  for (const auto& range : split(inside, ',')) append_range(range, item, &numbers);
  return numbers;
}

HostPattern parse_item(std::string_view item) {
  HostPattern pattern;
  size_t expansion = 1;
  for (size_t at = 0;;) {
    const size_t open = item.find('[', at);
    pattern.texts.emplace_back(item.substr(at, open - at));
    if (open == std::string_view::npos) return pattern;
    const size_t close = item.find(']', open);
    if (close == std::string_view::npos) refuse(item, "'[' without ']'");
    pattern.brackets.push_back(parse_bracket(item.substr(open + 1, close - open - 1), item));
    expansion *= pattern.brackets.back().size();
    if (expansion > kMaxHostsOfItem)
      refuse(item, fmt::format("more than {} hosts", kMaxHostsOfItem));
    at = close + 1;
  }
}

/// Indices of brackets, fastest first: the last one, then from the first on.
std::vector<size_t> running_order(size_t num_brackets) {
  std::vector<size_t> order;
  if (num_brackets > 0) order.push_back(num_brackets - 1);
  for (size_t i = 0; i + 1 < num_brackets; ++i) order.push_back(i);
  return order;
}

/// `bytes` counts the length of all names.
void append_hosts(const HostPattern& pattern, std::vector<std::string>* out, size_t* bytes) {
  const auto order = running_order(pattern.brackets.size());
  std::vector<size_t> digits(pattern.brackets.size(), 0);
  while (true) {
    std::string host = pattern.texts[0];
    for (size_t i = 0; i < digits.size(); ++i)
      host += pattern.brackets[i][digits[i]] + pattern.texts[i + 1];
    *bytes += host.size();
    if (*bytes > kMaxHostListBytes) refuse(host.substr(0, 40), "the list's names are too many");
    out->push_back(host);
    size_t place = 0;
    while (place < order.size() && ++digits[order[place]] == pattern.brackets[order[place]].size())
      digits[order[place++]] = 0;
    if (place == order.size()) return;
  }
}

/// End of the item that begins at `at`: a separator outside brackets.
size_t end_of_item(std::string_view list, size_t at) {
  bool inside = false;
  for (size_t i = at; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (!inside && is_separator(list[i])) return i;
  }
  return list.size();
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> hosts;
  size_t bytes = 0;
  for (size_t at = 0; at < list.size();) {
    if (is_separator(list[at])) {
      ++at;
      continue;
    }
    const size_t end = end_of_item(list, at);
    append_hosts(parse_item(list.substr(at, end - at)), &hosts, &bytes);
    at = end;
  }
  return hosts;
}

std::vector<int> parse_tasks_per_node(std::string_view text) {
  constexpr size_t kMaxHosts = 65536;
  std::vector<int> tasks;
  for (const std::string& item : split(text, ',')) {
    const auto what = fmt::format("tasks per node '{}'", item);
    const size_t open = item.find("(x");
    int64_t repeat = 1;
    if (open != std::string::npos) {
      if (item.back() != ')')
        throw Error(ErrorCode::kInvalidArgument, what + ": write COUNT or COUNT(xNODES)");
      repeat = parse_int(std::string_view(item).substr(open + 2, item.size() - open - 3), 1,
                         kMaxHosts, what);
    }
    const auto count = parse_int(std::string_view(item).substr(0, open), 1, 1 << 24, what);
    if (tasks.size() + static_cast<size_t>(repeat) > kMaxHosts)
      throw Error(ErrorCode::kInvalidArgument, what + ": too many nodes");
    tasks.insert(tasks.end(), static_cast<size_t>(repeat), static_cast<int>(count));
  }
  return tasks;
}

}  // namespace lockstep::inline internal
