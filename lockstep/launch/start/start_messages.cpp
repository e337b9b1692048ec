#include "lockstep/launch/start/start_messages.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

template <class Read>
auto read_line(const std::string& line, const Read& read) {
  try {
    return read(nlohmann::json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                std::string("what the starter of the hosts and its agents say: ") + error.what());
  }
}

}  // namespace

std::string to_line(const StartSetup& setup) {
  return dumped({{"secret", setup.secret},
                 {"words", setup.words},
                 {"variables", setup.variables},
                 {"folder", setup.folder},
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
    json.at("secret").get_to(setup.secret);
    json.at("words").get_to(setup.words);
    json.at("variables").get_to(setup.variables);
    json.at("folder").get_to(setup.folder);
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
