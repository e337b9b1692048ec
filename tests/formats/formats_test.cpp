// The bytes shown in docs/formats equal the code's: each block of the pages is compared with the
// code's own bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/comm/native/tcp/reception.h"
#include "lockstep/store/file/journal.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/version.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

/// The block "```LANGUAGE NAME" of docs/formats/PAGE.
std::string block_of(const std::string& page, const std::string& opening) {
  const std::string path = env_or("LOCKSTEP_SOURCE_DIR", ".") + "/docs/formats/" + page;
  std::ifstream file(path);
  std::string line, block;
  bool inside = false;
  while (std::getline(file, line)) {
    if (inside && line == "```") return block;
    if (inside) block += line + "\n";
    if (line == "```" + opening) inside = true;
  }
  ADD_FAILURE() << path << " has no block " << opening;
  return "";
}

/// Its bytes: pairs of hex digits at the beginning of each line; -1 for "..", any byte.
std::vector<int> shown_bytes(const std::string& page, const std::string& name) {
  static const std::regex kBytes("^((?:[0-9a-f]{2}|\\.\\.)(?: (?:[0-9a-f]{2}|\\.\\.))*)(?:  .*)?$");
  std::vector<int> bytes;
  std::istringstream lines(block_of(page, "hex " + name));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kBytes)) {
      ADD_FAILURE() << page << ": not bytes, two blanks and a text: " << line;
      continue;
    }
    std::istringstream words(match[1]);
    for (std::string word; words >> word;)
      bytes.push_back(word == ".." ? -1 : std::stoi(word, nullptr, 16));
  }
  return bytes;
}

template <class Plain>
std::string bytes_of(const Plain& plain) {
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_shown(const std::string& page, const std::string& name, const std::string& written) {
  const std::vector<int> shown = shown_bytes(page, name);
  ASSERT_EQ(shown.size(), written.size()) << page << ": " << name;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] < 0) continue;
    EXPECT_EQ(shown[i], static_cast<uint8_t>(written[i])) << page << ": " << name << ", byte " << i;
  }
}

StoreRequest set_answer() {
  StoreRequest request;
  request.op = StoreOp::kSet;
  request.keys = {"answer"};
  request.value = "42";
  return request;
}

TEST(Formats, Hello) {
  ASSERT_EQ(build_id(), "0.1.0/w2/le64") << "the page shows the hello of that build";
  expect_shown("wire.md", "hello", bytes_of(make_hello()));
  EXPECT_EQ(bytes_of(make_hello(Wire::kTls)).substr(0, 4), "LOCS");
}

TEST(Formats, Greeting) {
  EXPECT_EQ(offsetof(tcp::Greeting, from), 32U);
  EXPECT_EQ(offsetof(tcp::Greeting, to), 36U);
  EXPECT_EQ(sizeof(tcp::Greeting), 40U);
}

TEST(Formats, MessageOfACollective) {
  tcp::Frame frame;
  frame.operation = {.sequence = 3,
                     .count = 2,
                     .root = 0,
                     .kind = OpKind::kAllReduce,
                     .dtype = DType::kFloat32,
                     .op = ReduceOp::kSum};
  frame.bytes = 8;
  expect_shown("wire.md", "frame", bytes_of(frame));
}

TEST(Formats, MessageFromPointToPoint) {
  tcp::MessageFrame message;
  message.tag = 5;
  message.count = 2;
  message.dtype = DType::kFloat64;
  expect_shown("wire.md", "message", bytes_of(message));
}

/// Checks that the page's tables and lists have "N name".
void expect_listed(const std::string& page, int number, std::string_view name) {
  const std::string text = read_whole(env_or("LOCKSTEP_SOURCE_DIR", ".") + "/docs/formats/" + page);
  const std::regex row(fmt::format("\\b{}\\s(\\| )?{}\\b", number, name));
  EXPECT_TRUE(std::regex_search(text, row)) << page << ": no " << number << " " << name;
}

TEST(Formats, NumbersOfOperationsTypesAndReductions) {
  for (int i = 1; i < kNumOpKinds; ++i)
    expect_listed("wire.md", i, to_string(static_cast<OpKind>(i)));
  for (int i = 0; i < kNumDTypes; ++i)
    expect_listed("wire.md", i, to_string(static_cast<DType>(i)));
  for (int i = 0; i < kNumReduceOps; ++i)
    expect_listed("wire.md", i, to_string(static_cast<ReduceOp>(i)));
  for (int i = 0; i < kNumStoreOps; ++i)
    expect_listed("store.md", i, to_string(static_cast<StoreOp>(i)));
}

TEST(Formats, RequestAndReply) {
  expect_shown("store.md", "request", encode(RequestFrame{1, set_answer()}));
  StoreReply reply;
  reply.items = {{"answer", "42"}};
  expect_shown("store.md", "reply", encode(ReplyFrame{2, reply}));
}

TEST(Formats, Journal) {
  const TempFolder folder;
  const std::string secret = "a secret";
  Journal journal(folder.path(), secret);
  {
    Journal::Lock lock(journal, Deadline::after(10s));
    journal.begin();
    journal.append(RequestFrame{7, set_answer()});
  }
  const std::string written = read_whole(folder.path() / "lockstep-store");
  const size_t header = shown_bytes("journal.md", "header").size();
  ASSERT_EQ(header, 99U);
  expect_shown("journal.md", "header", written.substr(0, header));
  expect_shown("journal.md", "record", written.substr(header));
  const std::string proof = hex_digits(hmac_sha256(secret, "store in a folder"));
  EXPECT_EQ(written.substr(header - 65, 64), proof);
}

TEST(Formats, HeaderOfTensors) {
  const StoredHeader header =
      plan_stored_file({{.name = "weight", .type = StoredType::kF32, .shape = {1, 2}},
                        {.name = "bias", .type = StoredType::kF32, .shape = {1}}},
                       {{"format", "pt"}, {"model", "line"}});
  const std::string written = encode_stored_header(header);
  expect_shown("checkpoint.md", "safetensors", written.substr(0, 8));
  std::string text = written.substr(8);
  EXPECT_EQ(text.size() % 8, 0U);
  text.erase(text.find_last_not_of(' ') + 1);
  EXPECT_EQ(text + "\n", block_of("checkpoint.md", "json safetensors"));
}

/// A program that reads the page's text writes the same text.
TEST(Formats, StateOfTraining) {
  const std::string shown = block_of("checkpoint.md", "json state");
  const DecodedTrainingState decoded = decode_training_state(shown, "checkpoint.md");
  EXPECT_EQ(encode_training_state(decoded.state, decoded.files), shown);
}

TEST(Formats, FlightRecord) {
  const TempFolder folder;
  const auto path = folder.path() / "rank_0.flight";
  FlightRing ring(0, 2, path.string());
  FlightRing::Operation operation{};
  operation.call = "all_reduce";
  operation.group = ring.add_group("comm/1", 0, 2);
  operation.sequence = 1;
  operation.count = 4;
  operation.bytes = 16;
  operation.dtype = static_cast<uint8_t>(DType::kFloat32);
  operation.peer = -1;
  operation.site = CallSite::here();
  operation.waits = true;
  ring.leave(ring.enter(operation), 0);
  const std::string written = read_whole(path);
  EXPECT_EQ(written.size(), 184440U);
  expect_shown("flight_record.md", "header", written.substr(0, 56));
  expect_shown("flight_record.md", "event", written.substr(20600, 80));
  EXPECT_EQ(offsetof(FlightHeader, host), 56U);
  EXPECT_EQ(offsetof(FlightHeader, groups), 120U);
  EXPECT_EQ(offsetof(FlightHeader, sites), 8312U);
  EXPECT_EQ(offsetof(FlightMemory, events), 20600U);
  EXPECT_EQ(offsetof(FlightGroup, rank), 52U);
  EXPECT_EQ(sizeof(FlightGroup), 64U);
  EXPECT_EQ(sizeof(FlightSite), 48U);
  EXPECT_EQ(offsetof(FlightSite, file), 4U);
}

}  // namespace
}  // namespace lockstep
