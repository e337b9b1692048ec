#include "lockstep/world/detect/tasks_per_node.h"

#include <fmt/format.h>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {

std::vector<int> parse_tasks_per_node(std::string_view text) {
  constexpr size_t kMaxNodes = 65536;
  std::vector<int> tasks;
  for (const std::string& item : split(text, ',')) {
    const auto what = fmt::format("tasks per node '{}'", item);
    const size_t open = item.find("(x");
    int64_t repeat = 1;
    if (open != std::string::npos) {
      if (item.back() != ')')
        throw Error(ErrorCode::kInvalidArgument, what + ": write COUNT or COUNT(xNODES)");
      repeat = parse_int(std::string_view(item).substr(open + 2, item.size() - open - 3), 1,
                         kMaxNodes, what);
    }
    const auto count = parse_int(std::string_view(item).substr(0, open), 1, 1 << 24, what);
    if (tasks.size() + static_cast<size_t>(repeat) > kMaxNodes)
      throw Error(ErrorCode::kInvalidArgument, what + ": too many nodes");
    tasks.insert(tasks.end(), static_cast<size_t>(repeat), static_cast<int>(count));
  }
  return tasks;
}

}  // namespace lockstep
