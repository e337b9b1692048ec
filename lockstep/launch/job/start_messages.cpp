#include "lockstep/launch/job/start_messages.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

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

std::vector<std::string> characters_of(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const std::string& word : words) texts.push_back(characters_of(word));
  return texts;
}

template <class Read>
auto read_line(const std::string& line, const Read& read) {
  try {
    return read(nlohmann::json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                std::string("message between the hosts' starter and its agents: ") + error.what());
  }
}

}  // namespace

std::string to_line(const StartSetup& setup) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : setup.variables)
    variables[characters_of(name)] = characters_of(value);
  return dumped({{"secret", characters_of(setup.secret)},
                 {"words", characters_of(setup.words)},
                 {"variables", variables},
                 {"folder", characters_of(setup.folder)},
                 {"finds_port", setup.finds_port}});
}

std::string to_line(const StartGo& go) {
  return dumped({{"address", go.address}, {"port", go.port}});
}

std::string to_line(const StartHello& hello) {
  return dumped({{"address", hello.address}, {"port", hello.port}});
}

StartSetup setup_from_line(const std::string& line) {
  return read_line(line, [](const nlohmann::json& json) {
    StartSetup setup;
    setup.secret = bytes_of(json.at("secret"));
    for (const std::string word : json.at("words")) setup.words.push_back(bytes_of(word));
    const std::map<std::string, std::string> variables = json.at("variables");
    for (const auto& [name, value] : variables) setup.variables[bytes_of(name)] = bytes_of(value);
    setup.folder = bytes_of(json.at("folder"));
    json.at("finds_port").get_to(setup.finds_port);
    return setup;
  });
}

StartGo go_from_line(const std::string& line) {
  return read_line(line, [](const nlohmann::json& json) {
    return StartGo{json.at("address"), json.at("port")};
  });
}

StartHello hello_from_line(const std::string& line) {
  return read_line(line, [](const nlohmann::json& json) {
    return StartHello{json.at("address"), json.at("port")};
  });
}

std::string address_of_ssh(const std::string& ssh_connection) {
  const auto parts = split(ssh_connection, ' ');
  return parts.size() == 4 ? parts[2] : "";
}

}  // namespace lockstep
