#pragma once
// Messages between the starter of several hosts and its agents: lines on the agent's standard input
// and output. Pure.
//
//   starter ── setup ─────────────▶ agent      all that the agent needs, the job secret too
//   starter ◀─ hello ────────────── agent      it runs; the first host's: where the others meet
//   starter ── go ────────────────▶ agent      where to meet
//   starter ── signal ────────────▶ agent      as often as the user sends one
//   starter ◀─ report ───────────── agent      the failure that ended the job
//
// All other output of the agent is its workers'. The end of its input makes the agent end them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// Precedes an agent's lines for the starter.
constexpr std::string_view kStarterMark = "\x1elockstep ";

/// Bytes. A report contains the end of a worker's stderr, whose lines may be long.
constexpr size_t kMaxStarterLine = 4 << 20;

struct StartSetup {
  std::string secret;
  std::vector<std::string> words;  ///< Of `lockstep run`.
  std::map<std::string, std::string> variables;
  std::string folder;       ///< The working directory.
  bool finds_port = false;  ///< The others meet at this agent's host: it chooses the port.
};

struct StartGo {
  std::string address;  ///< Empty: the words have it.
  int port = 0;
};

struct StartHello {
  std::string address;  ///< Address by which the starter reached this host; empty: unknown.
  int port = 0;
};

std::string to_line(const StartSetup& setup);
std::string to_line(const StartGo& go);
std::string to_line(const StartHello& hello);

/// Errors: kCorrupt.
StartSetup setup_from_line(const std::string& line);
StartGo go_from_line(const std::string& line);
StartHello hello_from_line(const std::string& line);

/// SSH_CONNECTION ("client port server port"): this host's address as seen by its ssh client.
std::string address_of_ssh(const std::string& ssh_connection);

}  // namespace lockstep::inline internal
