#include "lockstep/launch/job/start_messages.h"

#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/json_members.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kMessage = "a message between the hosts' starter and its agents";

constexpr auto kSetupMembers = [](auto& m, auto& setup) {
  m.text("secret", setup.secret, kMaxStarterLine);
  m.texts("words", setup.words, kMaxStarterLine);
  m.texts("variables", setup.variables, kMaxStarterLine);
  m.text("folder", setup.folder, kMaxStarterLine);
  m.flag("finds_port", setup.finds_port);
};

/// Of StartGo and StartHello.
constexpr auto kEndpointMembers = [](auto& m, auto& place) {
  m.text("address", place.address, kMaxStarterLine);
  m.number("port", place.port, 0, 65535);
};

/// Words, variables and folders are bytes of any encoding, and JSON's texts are UTF-8: each byte is
/// sent as the character with its number.
std::string characters_of(const std::string& bytes) {
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x80) text += static_cast<char>(0xC0 | byte >> 6);
    text += byte < 0x80 ? each : static_cast<char>(0x80 | (byte & 0x3F));
  }
  return text;
}

/// The JSON library guarantees that `text` is UTF-8.
std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (first <= 0xC3 && i + 1 < text.size()) {
      const auto second = static_cast<unsigned char>(text[++i]);
      bytes += static_cast<char>(static_cast<unsigned char>(first << 6 | (second & 0x3F)));
    } else {
      throw Error(ErrorCode::kCorrupt,
                  "a message of the hosts' starter holds a character that is no byte");
    }
  }
  return bytes;
}

/// `setup` with each of its texts changed.
StartSetup with_texts(StartSetup setup, std::string (*change)(const std::string& text)) {
  setup.secret = change(setup.secret);
  for (std::string& word : setup.words) word = change(word);
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : setup.variables) variables[change(name)] = change(value);
  setup.variables = std::move(variables);
  setup.folder = change(setup.folder);
  return setup;
}

template <class T, class List>
T from_line(const std::string& line, const List& members) {
  return read_message<T>(line, kMaxStarterLine, kMessage, members);
}

}  // namespace

std::string to_line(const StartSetup& setup) {
  return json_of(with_texts(setup, characters_of), kSetupMembers) + '\n';
}

std::string to_line(const StartGo& go) {
  return json_of(go, kEndpointMembers) + '\n';
}

std::string to_line(const StartHello& hello) {
  return json_of(hello, kEndpointMembers) + '\n';
}

StartSetup setup_from_line(const std::string& line) {
  return with_texts(from_line<StartSetup>(line, kSetupMembers), bytes_of);
}

StartGo go_from_line(const std::string& line) {
  return from_line<StartGo>(line, kEndpointMembers);
}

StartHello hello_from_line(const std::string& line) {
  return from_line<StartHello>(line, kEndpointMembers);
}

std::string address_of_ssh(const std::string& ssh_connection) {
  const auto parts = split(ssh_connection, ' ');
  return parts.size() == 4 ? parts[2] : "";
}

}  // namespace lockstep::inline internal
