#pragma once
// Messages of agents as JSON objects, written and read by one list of their members. A received
// message is read completely and within bounds, or refused.
//
//   constexpr auto kMembers = [](auto& m, auto& message) {
//     m.text("host", message.host, kMaxName);
//     m.number("port", message.port, 0, 65535);
//   };
//   std::string to_json(const Message& message) { return json_of(message, kMembers); }

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// A host's name or address, a role, the name of a run: no longer than this.
inline constexpr size_t kMaxName = 255;

/// The beginning of `text`, at most `max_bytes` of it, for a member of limited length.
std::string cut(const std::string& text, size_t max_bytes);

/// Writes the members of a list; a MemberReader takes the same calls.
class MemberWriter {
 public:
  /// For `if (m.has(NAME))` before a member that a reader may lack.
  static bool has(const char* /*name*/) { return true; }
  /// A whole number in [lo, hi], a bool (0 or 1) or an enum.
  template <class T>
  void number(const char* name, const T& value, int64_t /*lo*/, int64_t /*hi*/) {
    json_[name] = static_cast<int64_t>(value);
  }
  /// A member that may be missing; its variable keeps its value then.
  template <class T>
  void maybe(const char* name, const T& value, int64_t lo, int64_t hi) {
    number(name, value, lo, hi);
  }
  template <class T>
  void maybe(const char* name, const std::optional<T>& value, int64_t lo, int64_t hi) {
    if (value) number(name, *value, lo, hi);
  }
  /// true or false.
  void flag(const char* name, bool value) { json_[name] = value; }
  /// A finite number.
  void real(const char* name, double value) { json_[name] = value; }
  /// At most `max_bytes`: the writer cuts a longer text, the reader refuses it.
  void text(const char* name, const std::string& value, size_t max_bytes) {
    json_[name] = cut(value, max_bytes);
  }
  void texts(const char* name, const std::vector<std::string>& values, size_t /*max_bytes*/) {
    json_[name] = values;
  }
  /// An object whose members are all texts.
  void texts(const char* name, const std::map<std::string, std::string>& values,
             size_t /*max_bytes*/) {
    json_[name] = values;
  }
  /// An object with its own list of members, or up to `most` such objects.
  template <class T, class List>
  void object(const char* name, const T& value, const List& list) {
    json_[name] = written(value, list);
  }
  template <class T, class List>
  void objects(const char* name, const std::vector<T>& values, size_t /*most*/, const List& list) {
    auto& all = json_[name] = nlohmann::json::array();
    for (const T& value : values) all.push_back(written(value, list));
  }

  template <class T, class List>
  static nlohmann::json written(const T& value, const List& list) {
    MemberWriter writer;
    list(writer, value);
    return std::move(writer.json_);
  }

 private:
  nlohmann::json json_ = nlohmann::json::object();
};

/// Reads the members in the order of the list, since bounds may depend on earlier ones. Errors:
/// kCorrupt.
class MemberReader {
 public:
  /// An object of at most `max_bytes`. `what` names it in errors.
  MemberReader(std::string_view text, size_t max_bytes, const char* what);
  explicit MemberReader(nlohmann::json object) : json_(std::move(object)) {}

  bool has(const char* name) const { return json_.contains(name); }
  template <class T>
  void number(const char* name, T& value, int64_t lo, int64_t hi) const {
    value = static_cast<T>(whole(name, lo, hi));
  }
  template <class T>
  void maybe(const char* name, T& value, int64_t lo, int64_t hi) const {
    if (has(name)) number(name, value, lo, hi);
  }
  template <class T>
  void maybe(const char* name, std::optional<T>& value, int64_t lo, int64_t hi) const {
    if (has(name)) number(name, value.emplace(), lo, hi);
  }
  void flag(const char* name, bool& value) const;
  void real(const char* name, double& value) const;
  void text(const char* name, std::string& value, size_t max_bytes) const;
  void texts(const char* name, std::vector<std::string>& values, size_t max_bytes) const;
  void texts(const char* name, std::map<std::string, std::string>& values, size_t max_bytes) const;
  template <class T, class List>
  void object(const char* name, T& value, const List& list) const {
    const MemberReader reader(part(name));
    list(reader, value);
  }
  template <class T, class List>
  void objects(const char* name, std::vector<T>& values, size_t most, const List& list) const {
    for (const MemberReader& reader : parts(name, most)) list(reader, values.emplace_back());
  }

 private:
  const nlohmann::json& member(const char* name) const;
  int64_t whole(const char* name, int64_t lo, int64_t hi) const;
  nlohmann::json part(const char* name) const;
  std::vector<MemberReader> parts(const char* name, size_t most) const;

  nlohmann::json json_;
};

/// JSON text; bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& object);

template <class T, class List>
std::string json_of(const T& message, const List& list) {
  return to_text(MemberWriter::written(message, list));
}

/// Errors: kCorrupt.
template <class T, class List>
T read_message(std::string_view text, size_t max_bytes, const char* what, const List& list) {
  const MemberReader reader(text, max_bytes, what);
  T message;
  list(reader, message);
  return message;
}

}  // namespace lockstep::inline internal
