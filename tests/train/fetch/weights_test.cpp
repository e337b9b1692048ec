#include "lockstep/train/fetch/weights.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/error.h"
#include "lockstep/train/config/weights.h"
#include "tests/data/errors.h"
#include "tests/data/fetch/http_server.h"
#include "tests/data/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using testing::serve;

TEST(DigestInName, IsWhatPublishersPutThere) {
  EXPECT_EQ(digest_in_name("resnet18-1e65cd21.ckpt"), "1e65cd21");
  EXPECT_EQ(digest_in_name("mobilenet_v3_large_100-6f5bf961.ckpt"), "6f5bf961");
  EXPECT_EQ(digest_in_name("densenet121-bf4ab27f-910v2.ckpt"), "bf4ab27f");
  EXPECT_EQ(digest_in_name("net-20230101.ckpt"), "") << "a date";
  EXPECT_EQ(digest_in_name("net-deadbeef0.ckpt"), "");
  EXPECT_EQ(digest_in_name("crnn-vgg7.ckpt"), "");
  EXPECT_EQ(digest_in_name("net.ckpt"), "");
}

class FetchWeights : public ::testing::Test {
 protected:
  FetchWeights() {
    setenv("LOCKSTEP_CACHE", dir_.path().c_str(), 1);
    setenv("HOME", dir_.path().c_str(), 1);
    setenv("no_proxy", "*", 1);
  }
  ~FetchWeights() override { unsetenv("LOCKSTEP_CACHE"); }

  static Config config_of(const std::string& address) {
    Config config;
    config.model.backbone.pretrained = address;
    return config;
  }

  const testing::TempDir dir_;
  const std::string body_ = std::string(100'000, 'w');
};

TEST_F(FetchWeights, GoIntoTheCacheOnce) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  const auto config = config_of(server.url("/mindcv/net.ckpt?download=true"));
  fetch_pretrained(config);
  EXPECT_EQ(read_file(dir_ / "weights/net.ckpt"), body_);
  EXPECT_EQ(require_weights(config.model.backbone.pretrained), dir_ / "weights/net.ckpt");
  fetch_pretrained(config);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(FetchWeights, ATeachersComeInTheSameWay) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  DistillationConfig distillation;
  distillation.teacher.pretrained = server.url("/teacher.safetensors");
  Config config;
  config.loss = distillation;
  fetch_pretrained(config);
  EXPECT_EQ(read_file(dir_ / "weights/teacher.safetensors"), body_);
  distillation.teacher.pretrained = "gone.ckpt";
  config.loss = distillation;
  EXPECT_EQ(error_of(ErrorCode::kNotFound, [&] { fetch_pretrained(config); }),
            "loss.teacher.pretrained: the weights gone.ckpt are not there");
}

TEST_F(FetchWeights, TheDigestInTheirNameIsTheirOwn) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  testing::write_text(dir_ / "original", body_);
  const std::string name = "net-" + sha256_of(dir_ / "original").substr(0, 8) + ".ckpt";
  fetch_pretrained(config_of(server.url("/" + name)));
  EXPECT_TRUE(fs::exists(dir_ / "weights" / name));
  const auto text = error_of(
      ErrorCode::kCorrupt, [&] { fetch_pretrained(config_of(server.url("/net-1e65cd2a.ckpt"))); });
  EXPECT_NE(text.find("expected 1e65cd2a; it was removed"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(dir_ / "weights/net-1e65cd2a.ckpt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "weights"), {}), 1) << "no part is left";
}

TEST_F(FetchWeights, WithoutANetworkALineSaysWhichFileToPutWhere) {
  const std::string address = "http://127.0.0.1:1/net.ckpt";
  const auto text = error_of(ErrorCode::kNotFound, [&] { fetch_pretrained(config_of(address)); });
  EXPECT_TRUE(text.starts_with("model.backbone.pretrained: the weights " + address +
                               " are not here (Failed to connect"))
      << text;
  EXPECT_TRUE(text.ends_with("): download that file and put it at " +
                             (dir_ / "weights/net.ckpt").string() +
                             "; -o model.backbone.pretrained=False starts without"))
      << text;
  Config config;
  config.model.pretrained = "gone.ckpt";
  EXPECT_EQ(error_of(ErrorCode::kNotFound, [&] { fetch_pretrained(config); }),
            "model.pretrained: the weights gone.ckpt are not there; -o model.pretrained=False "
            "starts without");
}

TEST_F(FetchWeights, RanksThatStartTogetherDownloadOnce) {
  HttpServer server([&](const HttpRequest& request) { return serve(body_, request); });
  const auto config = config_of(server.url("/net.ckpt"));
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(fork());
    if (ranks.back() != 0) continue;
    try {
      fetch_pretrained(config, Deadline::after(60s));
      _exit(read_file(dir_ / "weights/net.ckpt") == body_ ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(server.requests().size(), 1U);
}

}  // namespace
}  // namespace lockstep
