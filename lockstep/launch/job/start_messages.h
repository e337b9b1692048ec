#pragma once
// What the starter of several hosts and the agents it starts say to each other: lines on the
// agent's standard input and output. Pure.
//
//   starter ── setup ─────────────▶ agent      all that the agent needs, the job secret too
//   starter ◀─ hello ────────────── agent      it runs; the first host's: where the others meet
//   starter ── go ────────────────▶ agent      where to meet
//   starter ── signal ────────────▶ agent      as often as the user sends one
//   starter ◀─ report ───────────── agent      the failure that ended the job
//
// Besides these the agent's output is its workers'. When the agent's input ends it ends its
// workers.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Before an agent's lines that are for the starter.
constexpr std::string_view kStarterMark = "\x1elockstep ";

/// Bytes. A report holds the end of a worker's stderr, whose lines may be long.
constexpr size_t kMaxStarterLine = 4 << 20;

struct StartSetup {
  std::string secret;
  std::vector<std::string> words;  ///< Of `lockstep run`.
  std::map<std::string, std::string> variables;
  std::string folder;       ///< To work in.
  bool finds_port = false;  ///< The others meet at this agent's host: it says where.
};

struct StartGo {
  std::string address;  ///< Empty: the words say where.
  int port = 0;
};

struct StartHello {
  std::string address;  ///< Under which the starter reached this host; empty: not known.
  int port = 0;
};

std::string to_line(const StartSetup& setup);
std::string to_line(const StartGo& go);
std::string to_line(const StartHello& hello);

/// Errors: kCorrupt.
StartSetup setup_from_line(const std::string& line);
StartGo go_from_line(const std::string& line);
StartHello hello_from_line(const std::string& line);

/// SSH_CONNECTION ("client port server port"): this host's address as its ssh client knows it.
std::string address_of_ssh(const std::string& ssh_connection);

}  // namespace lockstep
