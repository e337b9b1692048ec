#include "lockstep/world/bootstrap/meet.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "tests/support/error_of.h"
#include "tests/support/killed_parent.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

TEST(BootstrapRecord, TravelsAsALine) {
  const BootstrapRecord record{{{"10.0.0.1", 4000}, {"fe00::1", 4000}}, "secret"};
  const auto line = to_line(record);
  EXPECT_EQ(line.find(' '), std::string::npos);
  EXPECT_EQ(line.find('='), std::string::npos);
  const auto read = parse_bootstrap_record(line);
  EXPECT_EQ(read.secret, "secret");
  ASSERT_EQ(read.endpoints.size(), 2U);
  EXPECT_EQ(to_string(read.endpoints[1]), "[fe00::1]:4000");
  EXPECT_EQ(parse_bootstrap_record(to_line({{{"a", 1}}, ""})).secret, "");
  EXPECT_EQ(read.wire, Wire::kPlain);
  EXPECT_EQ(parse_bootstrap_record(to_line({{{"a", 1}}, "s", Wire::kTls})).wire, Wire::kTls);
}

TEST(BootstrapRecord, LeavesOutWhatDoesNotFit) {
  BootstrapRecord record;
  record.secret = std::string(64, 'a');
  for (int i = 0; i < 200; ++i) record.endpoints.push_back({"10.0.0.1", 10000 + i});
  const auto line = to_line(record);
  EXPECT_LE(line.size(), kMaxExchangeBytes);
  EXPECT_GT(parse_bootstrap_record(line).endpoints.size(), 30U);
}

TEST(BootstrapRecord, RefusesWhatItDidNotWrite) {
  for (const char* line : {"", "lockstep1", "lockstep1|s", "lockstep2|s|a:1", "lockstep1|s|a",
                           "lockstep1|s|a:0", "lockstep1|s|a:x", "lockstep1|s|"}) {
    EXPECT_EQ(error_of([&] { parse_bootstrap_record(line); }).code(), ErrorCode::kCorrupt) << line;
  }
}

Identity exchanging(int rank, const std::string& secret) {
  Identity id;
  id.rank = rank;
  id.size = 2;
  id.bootstrap = BootstrapMethod::kExchange;
  id.secret = secret;
  return id;
}

TEST(FolderExchange, ASecondJobOfThatNameIsRefusedWhileTheFirstLives) {
  const TempFolder folder;
  const auto soon = Deadline::after(60s);
  auto first = open_folder_exchange(folder.path(), "job", /*alone=*/true);
  first->publish("first", soon);
  const auto error = error_of(
      [&] { open_folder_exchange(folder.path(), "job", /*alone=*/true)->publish("second", soon); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  const std::string named = "whose rank 0 is process " + std::to_string(::getpid()) + " (";
  EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
  EXPECT_EQ(open_folder_exchange(folder.path(), "job", /*alone=*/true)->receive(soon), "first");
  first.reset();
  const auto next = open_folder_exchange(folder.path(), "job", /*alone=*/true);
  next->publish("next", soon);
  EXPECT_EQ(next->receive(soon), "next");
}

TEST(FolderExchange, AForkedChildOfTheFirstJobKeepsOutNoOther) {
  const TempFolder folder;
  const auto soon = Deadline::after(10s);
  const testing::KilledParent parent([&](const auto& end) {
    auto first = open_folder_exchange(folder.path(), "job", /*alone=*/true);
    first->publish("first", soon);
    end();
  });
  const auto next = open_folder_exchange(folder.path(), "job", /*alone=*/true);
  EXPECT_NO_THROW(next->publish("next", soon));
}

TEST(FolderExchange, OfJobsOfOneNameThatBeginAtOnceOneGetsIt) {
  for (int round = 0; round < 200; ++round) {
    const TempFolder folder;
    const auto soon = Deadline::after(60s);
    std::atomic<int> ready = 0;
    std::vector<std::future<std::shared_ptr<RankExchange>>> jobs;
    for (int job = 0; job < 2; ++job) {
      jobs.push_back(std::async(std::launch::async, [&]() -> std::shared_ptr<RankExchange> {
        auto own = open_folder_exchange(folder.path(), "job", /*alone=*/true);
        ++ready;
        while (ready < 2) {
        }
        try {
          own->publish("line", soon);
        } catch (const Error&) {
          return nullptr;
        }
        return own;
      }));
    }
    int got = 0;
    std::vector<std::shared_ptr<RankExchange>> held;
    for (auto& job : jobs) held.push_back(job.get());
    for (const auto& each : held) got += each != nullptr ? 1 : 0;
    ASSERT_EQ(got, 1) << "in round " << round;
  }
}

/// Rank 1 waits in `folder` first; checks that both then agree.
void expect_to_meet_in(const std::string& folder, const std::string& secret) {
  const auto deadline = Deadline::after(60s);
  auto late = std::async(std::launch::async, [&] {
    Identity id = exchanging(1, "");  // only rank 0 was given it
    const auto store = meet_by_exchange(open_folder_exchange(folder, "job"), {}, &id, deadline);
    store->set("place", to_string(id.master), deadline);
    store->get("read", deadline);
    return id;
  });
  Identity id = exchanging(0, secret);
  auto store = meet_by_exchange(open_folder_exchange(folder, "job"), {"203.0.113.1", "127.0.0.1"},
                                &id, deadline);
  const auto place = store->get("place", deadline);
  struct stat status {};
  ASSERT_EQ(::stat((folder + "/job").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  store->set("read", "", deadline);
  const Identity other = late.get();
  EXPECT_EQ(other.secret, id.secret);
  EXPECT_EQ(other.master.host, "127.0.0.1");  // the other address is unassigned
  EXPECT_EQ(place, to_string(other.master));
  EXPECT_EQ(id.secret.size(), secret.empty() ? 64U : secret.size());
  store.reset();
  EXPECT_FALSE(std::filesystem::exists(folder + "/job"));
}

TEST(FolderExchange, CarriesAddressAndSecret) {
  const TempFolder folder;
  expect_to_meet_in(folder.path(), "");
  expect_to_meet_in(folder.path(), "given");
}

TEST(FolderExchange, RankZeroDecidesAboutTlsButNobodyGetsLessThanHeAsksFor) {
  for (const auto& [of_zero, of_one] :
       {std::pair{Wire::kTls, Wire::kPlain}, std::pair{Wire::kPlain, Wire::kTls}}) {
    const TempFolder folder;
    const auto deadline = Deadline::after(60s);
    Identity zero = exchanging(0, "");
    zero.wire = of_zero;
    // By name, so that the way is TCP.
    const auto store = meet_by_exchange(open_folder_exchange(folder.path(), "job"), {"localhost"},
                                        &zero, deadline);
    Identity one = exchanging(1, "");
    one.wire = of_one;
    const auto join = [&] {
      return meet_by_exchange(open_folder_exchange(folder.path(), "job"), {}, &one, deadline);
    };
    if (of_zero == Wire::kTls) {
      join()->set("k", "v", deadline);
      EXPECT_EQ(one.wire, Wire::kTls);
    } else {
      EXPECT_EQ(error_of([&] { join(); }).code(), ErrorCode::kInvalidArgument);
    }
  }
}

TEST(FolderExchange, GetsOverTheFileOfAnEarlierJob) {
  const TempFolder folder;
  open_folder_exchange(folder.path(), "job");
  {
    // As left by a killed rank 0: nobody listens there.
    const auto left = open_folder_exchange(folder.path(), "left");
    left->publish(to_line({{{"127.0.0.1", 9}}, "old"}), Deadline::after(1s));
    std::filesystem::rename(folder / "left", folder / "job");
  }
  expect_to_meet_in(folder.path(), "");
}

/// A folder in which a job of another build has left its line, until that has been read.
class LeftByAnotherBuild final : public RankExchange {
 public:
  explicit LeftByAnotherBuild(std::shared_ptr<RankExchange> later) : later_(std::move(later)) {}
  void publish(const std::string& line, Deadline deadline) override {
    later_->publish(line, deadline);
  }
  std::string receive(Deadline deadline) override {
    return std::exchange(read_, true) ? later_->receive(deadline) : "lockstep0";
  }
  bool may_change() const override { return true; }

 private:
  std::shared_ptr<RankExchange> later_;
  bool read_ = false;
};

TEST(FolderExchange, WaitsWhereAnotherBuildHasLeftItsFile) {
  const TempFolder folder;
  const auto deadline = Deadline::after(60s);
  auto late = std::async(std::launch::async, [&] {
    Identity id = exchanging(1, "");
    const auto exchange =
        std::make_shared<LeftByAnotherBuild>(open_folder_exchange(folder.path(), "job"));
    return meet_by_exchange(exchange, {}, &id, deadline)->get("k", deadline);
  });
  Identity id = exchanging(0, "");
  const auto store =
      meet_by_exchange(open_folder_exchange(folder.path(), "job"), {"127.0.0.1"}, &id, deadline);
  store->set("k", "v", deadline);
  EXPECT_EQ(late.get(), "v");
}

TEST(FolderExchange, TrustsOnlyAPrivateFile) {
  const TempFolder folder;
  write_file_atomically(folder / "job", "lockstep1|s|127.0.0.1:1");
  std::filesystem::permissions(folder / "job", std::filesystem::perms(0644));
  const auto exchange = open_folder_exchange(folder.path(), "job");
  const Error error = error_of([&] { exchange->receive(Deadline::after(1s)); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("mode 600"), std::string::npos);
}

// As NFS with root_squash: rank 0 must tell, because the others can only refuse its file.
TEST(FolderExchange, AFolderThatGivesFilesToAnotherUserIsRefusedAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has another user; scripts/test.sh sees to it";
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  testing::as_ordinary_user([&] {
    const Error error = error_of([&] {
      open_folder_exchange(folder.path(), "job", true)->publish("line", Deadline::after(1s));
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("to user 65534 with mode 600"), std::string::npos)
        << error.what();
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderExchange, FollowsNoLink) {
  const TempFolder folder;
  const auto other = open_folder_exchange(folder.path(), "other");
  other->publish("line", Deadline::after(1s));
  std::filesystem::create_symlink(folder / "other", folder / "job");
  const auto exchange = open_folder_exchange(folder.path(), "job");
  EXPECT_EQ(error_of([&] { exchange->receive(Deadline::after(1s)); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(FolderExchange, LeavesTheFileOfALaterJob) {
  const TempFolder folder;
  auto earlier = open_folder_exchange(folder.path(), "job");
  earlier->publish("earlier", Deadline::after(1s));
  const auto later = open_folder_exchange(folder.path(), "job");
  later->publish("later", Deadline::after(1s));
  earlier.reset();
  EXPECT_EQ(open_folder_exchange(folder.path(), "job")->receive(Deadline::after(1s)), "later");
}

TEST(FolderExchange, RankZeroThatDoesNotComeIsATimeout) {
  const TempFolder folder;
  const auto exchange = open_folder_exchange(folder.path(), "job");
  EXPECT_EQ(error_of([&] { exchange->receive(Deadline::after(50ms)); }).code(),
            ErrorCode::kTimeout);
  EXPECT_EQ(error_of([&] { open_folder_exchange("/nowhere", "job"); }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
