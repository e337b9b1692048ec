#pragma once
// Calls to any member of an etcd cluster that answers, retried until the deadline.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"
#include "lockstep/store/etcd/api.h"
#include "lockstep/store/etcd/etcd_store.h"

namespace lockstep::inline internal {

class EtcdClient {
 public:
  explicit EtcdClient(const EtcdOptions& options);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  struct Answer {
    std::string body;
    std::optional<etcd::Refusal> refusal;  ///< Instead of a body.
    bool too_large = false;                ///< The body was longer than HttpClient::kMaxBytes.
    bool in_doubt = false;                 ///< An earlier attempt may have succeeded as well.
  };
  /// One call; makes at least one attempt, however late it is. Errors: kTimeout (names the members
  /// and their failures), kMismatch (not etcd), kUnavailable (until the first answer: the TLS files
  /// are unusable, or they trust no member).
  Answer call(const char* path, const std::string& body, Deadline deadline);

  /// Passes each message of a stream to `on_message`, until that returns false. False: the deadline
  /// passed first. A broken stream begins again with its first message. The stream stays open; the
  /// next call continues it if it starts at the next revision.
  using OnMessage = std::function<bool(const etcd::WatchAnswer&)>;
  bool watch(const etcd::KeyRange& keys, int64_t start_revision, Deadline deadline,
             const OnMessage& on_message);

  /// Whether the next watch() of these keys from that revision needs no new stream.
  bool is_watching(const etcd::KeyRange& keys, int64_t start_revision);

  const std::string& name() const { return name_; }  ///< "etcd://a:2379,b:2379"

 private:
  class Attempts;
  struct Stream;
  std::unique_ptr<Stream> take_stream(const etcd::KeyRange& keys, int64_t start_revision);
  void keep_stream(std::unique_ptr<Stream> stream);
  void check_has_been_at(int64_t revision, Deadline deadline);
  std::string url(size_t member, const char* path) const;
  Error foreign(size_t member, const std::string& what) const;
  std::string explained(const HttpClient::Result& result) const;
  /// Nothing: this attempt has failed; `why` has the reason.
  std::optional<Answer> answer_of(size_t member, HttpClient::Result result, std::string& why) const;

  std::vector<Endpoint> members_;
  bool use_tls_;
  std::string name_;
  std::chrono::milliseconds stream_time_;
  HttpClient http_;
  std::atomic<bool> answered_ = false;  ///< A member has, so the address and TLS files were right.
  std::atomic<size_t> current_ = 0;     ///< The member that answered last.
  Mutex mutex_;
  std::unique_ptr<Stream> kept_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Open, and not in use now.
};

}  // namespace lockstep::inline internal
