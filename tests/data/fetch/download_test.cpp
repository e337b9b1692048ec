#include "lockstep/data/fetch/download.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <iostream>

#include "lockstep/base/file.h"
#include "tests/data/errors.h"
#include "tests/data/fetch/http_server.h"
#include "tests/data/temp_dir.h"
#include "tests/support/killed_parent.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using testing::serve;
using testing::write_text;

std::string make_body() {
  std::string body(300'000, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + i / 257);
  return body;
}

class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    ::setenv("no_proxy", "*", 1);
    write_text(dir_ / "original", body_);
    what_.path = dir_ / "file";
    what_.md5 = md5_of(dir_ / "original");
    what_.pause = std::chrono::milliseconds(1);
  }

  std::optional<std::string> fetch(const HttpServer& server) {
    what_.url = server.url();
    return download(what_);
  }
  fs::path part() const { return dir_ / fmt::format("file.{}.part", what_.host); }
  void expect_whole() const {
    EXPECT_EQ(read_file(dir_ / "file"), body_);
    EXPECT_FALSE(fs::exists(part()));
  }

  const testing::TempDir dir_;
  const std::string body_ = make_body();
  Download what_;
};

using Fetch = DownloadTest;

TEST_F(Fetch, WholeFile) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  int64_t done = 0;
  int64_t total = 0;
  what_.progress = [&](int64_t now, int64_t all) {
    EXPECT_GE(now, done);
    done = now;
    total = all;
  };
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_FALSE(server.requests()[0].range_begin);
  EXPECT_EQ(done, 300'000);
  EXPECT_EQ(total, 300'000);
}

TEST_F(Fetch, ContinuesWhatIsThere) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  write_text(part(), body_.substr(0, 1234));
  int64_t total = 0;
  what_.progress = [&](int64_t, int64_t all) { total = all; };
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(server.requests()[0].range_begin, 1234u);
  EXPECT_EQ(total, 300'000);
}

TEST_F(Fetch, ServerThatIgnoresRangeSendsItAllAgain) {
  HttpServer server([&](const HttpRequest&) { return HttpReply{.body = body_}; });
  write_text(part(), body_.substr(0, 5000));
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
}

TEST_F(Fetch, WholePartNeedsNoMoreBytes) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  write_text(part(), body_);
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Fetch, PartOfAnotherFileIsThrownAway) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  for (const size_t size : {size_t{100}, size_t{400'000}}) {
    fs::remove(dir_ / "file");
    write_text(part(), std::string(size, 'x'));
    EXPECT_EQ(fetch(server), std::nullopt);
    expect_whole();
    EXPECT_FALSE(server.requests().back().range_begin);
  }
}

TEST_F(Fetch, HostsThatShareTheFolderDoNotShareThePart) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  const fs::path others = dir_ / "file.other.part";
  write_text(others, body_.substr(0, 50'000));
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  EXPECT_FALSE(server.requests()[0].range_begin);
  EXPECT_EQ(fs::file_size(others), 50'000u);
}

TEST_F(Fetch, BrokenConnectionIsResumedAtOnce) {
  int calls = 0;
  HttpServer server([&](const HttpRequest& request) {
    auto reply = serve(body_, request);
    if (++calls < 3) reply.close_after = 70'000;
    return reply;
  });
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  ASSERT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(server.requests()[1].range_begin, 70'000u);
  EXPECT_EQ(server.requests()[2].range_begin, 140'000u);
}

TEST_F(Fetch, BrokenTooOftenKeepsThePartForNextTime) {
  {
    HttpServer server([&](const HttpRequest& request) {
      auto reply = serve(body_, request);
      reply.close_after = 10'000;
      return reply;
    });
    const auto text = error_of(ErrorCode::kUnavailable, [&] { fetch(server); });
    EXPECT_NE(text.find("broke off after 29.3 KiB"), std::string::npos) << text;
    EXPECT_EQ(fs::file_size(part()), 30'000u);
    EXPECT_FALSE(fs::exists(dir_ / "file"));
  }
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
  EXPECT_EQ(server.requests()[0].range_begin, 30'000u);
}

TEST_F(Fetch, WrongChecksumLeavesNothing) {
  HttpServer server([&](const HttpRequest&) { return HttpReply{.body = "something else"}; });
  const auto text = error_of(ErrorCode::kCorrupt, [&] { fetch(server); });
  EXPECT_NE(text.find("has MD5 6c7ba9c5a141421e1c03cb9807c97c74, expected " + what_.md5),
            std::string::npos)
      << text;
  EXPECT_FALSE(fs::exists(part()));
  EXPECT_FALSE(fs::exists(dir_ / "file"));
}

TEST_F(Fetch, NothingToBeHadIsAnAnswer) {
  HttpServer missing([](const HttpRequest&) { return HttpReply{.status = 404, .body = "no"}; });
  EXPECT_NE(fetch(missing).value_or("").find("404"), std::string::npos);
  what_.url = "http://127.0.0.1:1/file";
  EXPECT_NE(download(what_).value_or("").find("connect"), std::string::npos);
  what_.url = "file:///etc/hostname";
  EXPECT_NE(download(what_), std::nullopt);
  EXPECT_FALSE(fs::exists(part()));
  EXPECT_FALSE(fs::exists(dir_ / "file"));
}

TEST_F(Fetch, NoNetworkKeepsAnEarlierPart) {
  write_text(part(), body_.substr(0, 777));
  what_.url = "http://127.0.0.1:1/file";
  EXPECT_NE(download(what_), std::nullopt);
  EXPECT_EQ(fs::file_size(part()), 777u);
}

TEST_F(Fetch, FollowsRedirects) {
  HttpServer server([&](const HttpRequest& request) {
    if (request.path == "/file") return HttpReply{.status = 302, .headers = "Location: /b\r\n"};
    return serve(body_, request);
  });
  EXPECT_EQ(fetch(server), std::nullopt);
  expect_whole();
}

TEST_F(Fetch, FullDiskIsNamed) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  what_.url = server.url();
  const auto with_little_room = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50'000, 50'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      download(what_);
    } catch (const Error& error) {
      std::cerr << to_string(error.code()) << " " << error.what();
      std::_Exit(exit_status(error));
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(with_little_room(), ::testing::ExitedWithCode(1),
              "kIo .*file\\..*\\.part: File too large");
  EXPECT_FALSE(fs::exists(dir_ / "file"));
}

TEST(TakeTurn, EndsWithItsProcessAlsoIfAChildLivesOn) {
  const testing::TempDir dir;
  const testing::KilledParent parent([&](const auto& end) {
    const auto turn = take_turn(dir.path(), Deadline::after(std::chrono::seconds(10)));
    end();
  });
  const auto turn = take_turn(dir.path(), Deadline::after(std::chrono::milliseconds(0)));
  error_of(ErrorCode::kTimeout,
           [&] { take_turn(dir.path(), Deadline::after(std::chrono::milliseconds(0))); });
}

TEST(Md5, OfAFile) {
  const testing::TempDir dir;
  write_text(dir / "empty", "");
  write_text(dir / "abc", "abc");
  EXPECT_EQ(md5_of(dir / "empty"), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of(dir / "abc"), "900150983cd24fb0d6963f7d28e17f72");
  error_of(ErrorCode::kIo, [&] { md5_of(dir / "none"); });
}

}  // namespace
}  // namespace lockstep
