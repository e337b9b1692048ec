#include "lockstep/store/etcd/api.h"

#include <fmt/format.h>

#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store/etcd/base64.h"

namespace lockstep::etcd {
namespace {

Error corrupt(const std::string& what) {
  return {ErrorCode::kCorrupt, "not an answer of etcd's: " + what};
}

Json parse_object(std::string_view body) {
  auto json = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw corrupt("it is not a JSON object");
  return json;
}

/// The member, or null if there is none.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) throw corrupt("an object was expected");
  const auto it = object.find(name);
  return it != object.end() ? *it : kNone;
}

int64_t number(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return 0;
  if (json.is_number_integer()) return json.get<int64_t>();
  if (!json.is_string()) throw corrupt(fmt::format("\"{}\" is not a number", name));
  const auto value = as_number<int64_t>(json.get_ref<const std::string&>());
  if (!value) throw corrupt(fmt::format("\"{}\" is not a number", name));
  return *value;
}

std::string text(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return {};
  if (!json.is_string()) throw corrupt(fmt::format("\"{}\" is not a text", name));
  return json.get<std::string>();
}

bool flag(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return false;
  if (!json.is_boolean()) throw corrupt(fmt::format("\"{}\" is not a flag", name));
  return json.get<bool>();
}

const Json& list(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const Json& json = member(object, name);
  if (json.is_null()) return kEmpty;
  if (!json.is_array()) throw corrupt(fmt::format("\"{}\" is not a list", name));
  return json;
}

int64_t revision_of(const Json& answer) {
  const Json& header = member(answer, "header");
  return header.is_null() ? 0 : number(header, "revision");
}

Item parse_item(const Json& json) {
  return {decode_base64(text(json, "key")), decode_base64(text(json, "value")),
          number(json, "mod_revision"), number(json, "lease")};
}

RangeAnswer range_of(const Json& json) {
  RangeAnswer answer;
  answer.revision = revision_of(json);
  for (const Json& item : list(json, "kvs")) answer.items.push_back(parse_item(item));
  return answer;
}

/// Streaming calls wrap each message.
const Json& result_of(const Json& message) {
  const Json& result = member(message, "result");
  if (!result.is_object()) throw corrupt("there is no result");
  return result;
}

Json condition(std::string_view key, const char* target, const char* name, Json value) {
  return {{"key", encode_base64(key)},
          {"target", target},
          {"result", "EQUAL"},
          {name, std::move(value)}};
}

void add_operations(Json& to, const char* name, const std::vector<Json>& operations) {
  for (const Json& operation : operations) to.push_back({{name, operation}});
}

}  // namespace

KeyRange keys_below(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return {std::move(prefix), std::string(1, '\0')};  // to the last key there is
  ++end.back();
  return {std::move(prefix), std::move(end)};
}

Json range(const KeyRange& keys, bool keys_only) {
  Json json = {{"key", encode_base64(keys.first)}};
  if (!keys.end.empty()) json["range_end"] = encode_base64(keys.end);
  if (keys_only) json["keys_only"] = true;
  return json;
}

Json newest(const KeyRange& keys) {
  Json json = range(keys, /*keys_only=*/true);
  json["sort_order"] = "DESCEND";
  json["sort_target"] = "MOD";
  json["limit"] = "1";
  return json;
}

Json put(std::string_view key, std::string_view value, int64_t lease) {
  Json json = {{"key", encode_base64(key)}, {"value", encode_base64(value)}};
  if (lease != 0) json["lease"] = std::to_string(lease);
  return json;
}

Json erase(std::string_view key) {
  return {{"key", encode_base64(key)}};
}

Json if_missing(std::string_view key) {
  return condition(key, "VERSION", "version", "0");
}
Json if_revision(std::string_view key, int64_t mod_revision) {
  return condition(key, "MOD", "mod_revision", std::to_string(mod_revision));
}

std::string Transaction::body() const {
  Json json = {{"compare", conditions}, {"success", Json::array()}, {"failure", Json::array()}};
  add_operations(json["success"], "request_put", puts);
  add_operations(json["failure"], "request_range", else_ranges);
  return json.dump();
}

std::string watch_body(const KeyRange& keys, int64_t start_revision) {
  Json create = range(keys);
  create["start_revision"] = std::to_string(start_revision);
  return Json{{"create_request", std::move(create)}}.dump();
}

std::string lease_grant_body(int64_t id, int64_t ttl_s) {
  return Json{{"ID", std::to_string(id)}, {"TTL", std::to_string(ttl_s)}}.dump();
}

std::string lease_body(int64_t id) {
  return Json{{"ID", std::to_string(id)}}.dump();
}

RangeAnswer parse_range(std::string_view body) {
  return range_of(parse_object(body));
}

int64_t parse_deleted(std::string_view body) {
  return number(parse_object(body), "deleted");
}

std::vector<Item>& TransactionAnswer::found() {
  if (ranges.empty()) throw corrupt("a transaction without its range");
  return ranges.front().items;
}

TransactionAnswer parse_transaction(std::string_view body) {
  const Json json = parse_object(body);
  TransactionAnswer answer;
  answer.succeeded = flag(json, "succeeded");
  for (const Json& response : list(json, "responses")) {
    const Json& found = member(response, "response_range");
    if (!found.is_null()) answer.ranges.push_back(range_of(found));
  }
  return answer;
}

int64_t parse_lease_ttl(std::string_view body) {
  // A server that ends then may append a line with an error.
  return number(result_of(parse_object(first_line(body))), "TTL");
}

WatchAnswer parse_watch(std::string_view line) {
  const Json message = parse_object(line);
  WatchAnswer answer;
  if (!message.contains("result") && message.contains("error")) {
    const auto refusal = parse_refusal(line);
    answer.failed = true;
    if (refusal) answer.reason = refusal->message;
    return answer;
  }
  const Json& result = result_of(message);
  answer.canceled = flag(result, "canceled");
  answer.revision = revision_of(result);
  answer.compact_revision = number(result, "compact_revision");
  answer.reason = text(result, "cancel_reason");
  for (const Json& event : list(result, "events"))
    answer.events.push_back({parse_item(member(event, "kv")), text(event, "type") == "DELETE"});
  return answer;
}

std::optional<Refusal> parse_refusal(std::string_view body) {
  auto json = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  // A failed stream wraps its error: {"error": {"grpc_code": 14, "message": ...}}.
  if (json.is_object() && member(json, "error").is_object()) json = Json(json["error"]);
  if (!json.is_object() || (!json.contains("error") && !json.contains("message")))
    return std::nullopt;
  try {
    Refusal refusal;
    refusal.code = json.contains("grpc_code") ? number(json, "grpc_code") : number(json, "code");
    refusal.message = json.contains("message") ? text(json, "message") : text(json, "error");
    return refusal;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool worth_another_attempt(const Refusal& refusal) {
  return refusal.code == kUnavailable || refusal.code == kDeadlineExceeded ||
         refusal.code == kCancelled;
}

}  // namespace lockstep::etcd
