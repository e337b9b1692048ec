#include "lockstep/launch/agent/error_file.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxLineBytes = 500;

nlohmann::json parse_leniently(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string first_lines(const std::string& text, int max_lines) {
  std::string kept;
  int count = 0;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    if (count++ == max_lines) return kept + "\n...";
    if (!kept.empty()) kept += '\n';
    kept += line.substr(0, kMaxLineBytes);
  }
  return kept;
}

}  // namespace

std::optional<std::string> error_message(const std::string& json, int max_lines) {
  const auto file = parse_leniently(json);
  if (!file.is_object() || !file.contains("message")) return std::nullopt;
  const auto& message = file["message"];
  std::string text;
  if (message.is_string()) text = message.get<std::string>();
  if (message.is_object()) {
    const auto inner = message.find("message");
    if (inner != message.end() && inner->is_string()) text = inner->get<std::string>();
  }
  text = first_lines(text, max_lines);
  if (text.empty()) return std::nullopt;
  return text;
}

std::string with_error_code(const std::string& json, int code) {
  auto file = parse_leniently(json);
  if (!file.is_object() || !file.contains("message") || !file["message"].is_object()) return json;
  file["message"]["errorCode"] = code;
  return file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::string> read_error_message(const std::string& path) {
  const std::string text = read_if_there(path);
  return text.empty() ? std::nullopt : error_message(text);
}

void copy_error_file(const std::string& from, const std::string& to, int code) {
  if (to.empty() || from.empty() || from == to) return;
  const std::string text = read_if_there(from);
  if (text.empty()) return;
  const std::string copy = with_error_code(text, code);
  const UniqueFd file(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  try {
    if (!file) throw io_error("open " + to);
    write_all(file.get(), copy.data(), copy.size(), to);
  } catch (const Error& error) {
    log_warn(std::string("TORCHELASTIC_ERROR_FILE: ") + error.what());
  }
}

}  // namespace lockstep::inline internal
