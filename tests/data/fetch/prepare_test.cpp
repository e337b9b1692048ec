#include "lockstep/data/fetch/prepare.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/download.h"
#include "tests/data/errors.h"
#include "tests/data/fetch/http_server.h"
#include "tests/data/fetch/make_archive.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::cifar_record;
using testing::error_of;
using testing::HttpRequest;
using testing::HttpServer;
using testing::make_archive;
using testing::serve;
using testing::write_text;

class Prepare : public ::testing::Test {
 protected:
  Prepare() {
    ::setenv("no_proxy", "127.0.0.1", 1);
    // Tests cannot reach the official place, even with a network.
    ::setenv("https_proxy", "http://127.0.0.1:1", 1);
    options_.dir = root_ / "sub/cifar10";
    options_.synthetic = {.train_records = 20, .test_records = 10};
    make_archive(root_ / "archive", {{"c/data_batch_1.bin", cifar_record(1, 2)},
                                     {"c/test_batch.bin", cifar_record(3, 4)}});
    archive_ = read_file(root_ / "archive");
    options_.md5 = md5_of(root_ / "archive");
  }

  HttpServer::Answer serving(const std::string& body) {
    return [body](const HttpRequest& request) { return serve(body, request); };
  }
  /// Names in the folder that is to contain the data set's folder.
  std::vector<std::string> beside() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ / "sub")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const testing::TempDir root_;
  PrepareOptions options_;
  std::string archive_;
};

using Names = std::vector<std::string>;

TEST_F(Prepare, FindsWhatIsThere) {
  fs::create_directories(options_.dir / "cifar-10-batches-bin");
  write_text(options_.dir / "cifar-10-batches-bin/test_batch.bin", cifar_record(0, 0));
  const auto data = prepare_cifar10(options_);
  EXPECT_EQ(data.source, DataSource::kFound);
  EXPECT_EQ(data.dir, options_.dir / "cifar-10-batches-bin");
  EXPECT_FALSE(data.synthetic);
}

TEST_F(Prepare, DownloadsAndUnpacks) {
  HttpServer server(serving(archive_));
  options_.url = server.url();
  fs::create_directories(options_.dir);  // an empty folder counts as none
  const auto data = prepare_cifar10(options_);
  EXPECT_EQ(data.source, DataSource::kDownloaded);
  EXPECT_FALSE(data.synthetic);
  EXPECT_EQ(Cifar10::load(data.dir, Split::kTrain).size(), 1);
  EXPECT_EQ(Cifar10::load(data.dir, Split::kTest).label(0), 3);
  EXPECT_EQ(beside(), Names{"cifar10"});
  EXPECT_EQ(prepare_cifar10(options_).source, DataSource::kFound);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Prepare, WithoutANetworkTheDataAreSyntheticWithAWarning) {
  ::testing::internal::CaptureStderr();
  const auto data = prepare_cifar10(options_);
  const auto text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(data.source, DataSource::kGenerated);
  EXPECT_TRUE(data.synthetic);
  EXPECT_NE(text.find("no download: "), std::string::npos) << text;
  EXPECT_NE(text.find("is a synthetic data set"), std::string::npos) << text;
  EXPECT_EQ(Cifar10::load(data.dir, Split::kTrain).size(), 20);
  EXPECT_EQ(beside(), Names{"cifar10"});

  ::testing::internal::CaptureStderr();
  const auto again = prepare_cifar10(options_);
  EXPECT_EQ(again.source, DataSource::kFound);
  EXPECT_TRUE(again.synthetic);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("is a synthetic data set"),
            std::string::npos);
}

TEST_F(Prepare, GenerateAsksNoNetwork) {
  options_.generate = true;
  options_.url = "http://127.0.0.1:1/would-be-an-error";
  EXPECT_EQ(prepare_cifar10(options_).source, DataSource::kGenerated);
}

TEST_F(Prepare, NamedPlaceNeverFallsBack) {
  options_.url = "http://127.0.0.1:1/archive";
  const auto text = error_of(ErrorCode::kUnavailable, [&] { prepare_cifar10(options_); });
  EXPECT_NE(text.find("http://127.0.0.1:1/archive cannot be had"), std::string::npos) << text;
  EXPECT_EQ(beside(), Names{});
}

TEST_F(Prepare, WrongChecksumLeavesNothing) {
  HttpServer server(serving("not the archive"));
  options_.url = server.url();
  error_of(ErrorCode::kCorrupt, [&] { prepare_cifar10(options_); });
  EXPECT_EQ(beside(), Names{});
}

TEST_F(Prepare, ArchiveWithoutDataLeavesNothing) {
  make_archive(root_ / "other", {{"readme.html", "<html>"}});
  HttpServer server(serving(read_file(root_ / "other")));
  options_.url = server.url();
  options_.md5 = md5_of(root_ / "other");
  error_of(ErrorCode::kCorrupt, [&] { prepare_cifar10(options_); });
  EXPECT_EQ(beside(), Names{});
}

TEST_F(Prepare, FolderOfOtherThingsIsLeftAlone) {
  fs::create_directories(options_.dir);
  write_text(options_.dir / "thesis.tex", "years of work");
  const auto text = error_of(ErrorCode::kInvalidArgument, [&] { prepare_cifar10(options_); });
  EXPECT_NE(text.find("holds no CIFAR-10 files"), std::string::npos) << text;
  EXPECT_TRUE(fs::exists(options_.dir / "thesis.tex"));
}

TEST_F(Prepare, LeftoversOfAKilledProcessAreReplaced) {
  fs::create_directories(options_.dir.string() + ".tmp");
  write_text(options_.dir.string() + ".tmp/data_batch_1.bin", "half a file");
  options_.generate = true;
  const auto data = prepare_cifar10(options_);
  EXPECT_EQ(Cifar10::load(data.dir, Split::kTrain).size(), 20);
  EXPECT_EQ(beside(), Names{"cifar10"});
}

TEST_F(Prepare, SeveralAtOnceTakeTurns) {
  HttpServer server(serving(archive_));
  options_.url = server.url();
  std::atomic<int> downloads = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto data = prepare_cifar10(options_);
      downloads += data.source == DataSource::kDownloaded ? 1 : 0;
      EXPECT_EQ(Cifar10::load(data.dir, Split::kTest).size(), 1);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(downloads, 1);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Prepare, FullDiskLeavesNothing) {
  options_.generate = true;
  const auto with_little_room = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};  // less than one file
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      prepare_cifar10(options_);
    } catch (const Error& error) {
      std::cerr << to_string(error.code()) << " " << error.what();
      std::_Exit(exit_status(error));
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(with_little_room(), ::testing::ExitedWithCode(1), "kIo .*File too large");
  EXPECT_EQ(beside(), Names{});
}

}  // namespace
}  // namespace lockstep
