#include "lockstep/world/rank_table/document.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::rank_table {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 12;      // a table needs 5
constexpr size_t kMaxNames = 100;  // an ordered_json is searched linearly
constexpr size_t kMaxProblem = 200;

/// Follows the parser through the text and throws if it is out of bounds.
class Bounds {
 public:
  void operator()(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMaxDepth) refuse(fmt::format("nested deeper than {} levels", kMaxDepth));
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event != Json::parse_event_t::key) return;
    const std::string name = value.get<std::string>();
    if (!names_.back().insert(name).second) refuse("an object has '" + name + "' twice");
    if (names_.back().size() > kMaxNames)
      refuse(fmt::format("an object has more than {} names", kMaxNames));
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) { throw Error(ErrorCode::kCorrupt, why); }

  std::vector<std::set<std::string>> names_;
};

/// The JSON library's message as one line of printable ASCII.
std::string tidy(std::string text) {
  if (const size_t prefix = text.find("] "); prefix != std::string::npos) text.erase(0, prefix + 2);
  text = shortened(text, kMaxProblem);
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return text;
}

}  // namespace

Json parse_document(std::string_view text, std::string* problem) {
  if (static_cast<int64_t>(text.size()) > kMaxRankTableBytes) {
    *problem = fmt::format("{} are too many; at most {} are read",
                           format_bytes(static_cast<int64_t>(text.size())),
                           format_bytes(kMaxRankTableBytes));
    return nullptr;
  }
  try {
    Bounds bounds;
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
      bounds(depth, event, value);
      return true;
    });
  } catch (const Json::exception& error) {
    *problem = "not JSON: " + tidy(error.what());
  } catch (const Error& error) {
    *problem = tidy(error.what());
  }
  return nullptr;
}

std::string dump_document(const Json& document) {
  try {
    return document.dump(4, ' ', true);
  } catch (const Json::type_error&) {
    throw Error(ErrorCode::kInvalidArgument, "rank table: a text is not UTF-8");
  }
}

}  // namespace lockstep::rank_table
