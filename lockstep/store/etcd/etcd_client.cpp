#include "lockstep/store/etcd/etcd_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Least time of a call after its deadline: existing data must be found.
constexpr auto kLeastCallTime = 1s;
/// Limit of one attempt: a stuck member must not use up the others' time.
constexpr auto kAttemptTime = 5s;
/// A silent watch must verify that etcd is alive, and waits so much longer for that.
constexpr auto kWatchGrace = 5s;

std::string name_of(const EtcdOptions& options) {
  std::string name = options.use_tls ? "etcd+https://" : "etcd://";
  for (size_t i = 0; i < options.members.size(); ++i)
    name += (i == 0 ? "" : ",") + to_string(options.members[i]);
  return name;
}

}  // namespace

/// One connection of a watch.
struct EtcdClient::Stream {
  Stream(EtcdClient& client, size_t of_member, const etcd::KeyRange& of_keys, int64_t revision)
      : member(of_member),
        keys(of_keys),
        next_revision(revision),
        http(client.http_.tls(), client.url(of_member, "/v3/watch"),
             etcd::watch_body(of_keys, revision)),
        old(Deadline::after(client.stream_time_)) {}

  size_t member;
  etcd::KeyRange keys;
  int64_t next_revision;  ///< Where this or the next connection continues.
  HttpStream http;
  Deadline old;
  std::string rest{};  ///< An incomplete line, or lines not requested yet.
  bool heard = false;
  bool enough = false;
  bool over = false;    ///< No more messages come.
  bool behind = false;  ///< The requested revision is more than one ahead of that member.
  std::string ended{};  ///< Why etcd ended it, except for a compacted start revision.

  HttpClient::Result read(Deadline limit, Deadline deadline, const OnMessage& on_message) {
    enough = false;
    if (!rest.empty() && !feed({}, deadline, on_message))
      return {HttpClient::Outcome::kAnswered, 200, {}, {}};
    return http.read(limit,
                     [&](std::string_view bytes) { return feed(bytes, deadline, on_message); });
  }
  bool can_go_on() const { return http.open() && heard && !behind && !over && !old.passed(); }

 private:
  /// False if no more messages are wanted.
  bool feed(std::string_view bytes, Deadline deadline, const OnMessage& on_message) {
    rest += bytes;
    if (rest.size() > HttpClient::kMaxBytes)
      throw Error(ErrorCode::kCorrupt, "etcd's answer to a watch has no end");
    size_t begin = 0;
    bool more = true;
    for (size_t end = 0; more && (end = rest.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      if (end > begin)
        more = take(std::string_view(rest).substr(begin, end - begin), deadline, on_message);
    }
    rest.erase(0, begin);
    return more;
  }

  bool take(std::string_view line, Deadline deadline, const OnMessage& on_message) {
    const auto answer = etcd::parse_watch(line);
    over = answer.failed || answer.canceled;
    heard = heard || !answer.failed;
    behind = answer.revision != 0 && answer.revision + 1 < next_revision;
    if (behind) return false;
    if (over && answer.compact_revision == 0) {
      ended = answer.reason.empty() ? "the watch was cancelled" : answer.reason;
      return false;
    }
    for (const auto& event : answer.events)
      next_revision = std::max(next_revision, event.item.mod_revision + 1);
    enough = !on_message(answer);
    return !enough && !deadline.passed();
  }
};

/// Chooses the next member, and pauses after all have failed.
class EtcdClient::Attempts {
 public:
  explicit Attempts(EtcdClient& client) : client_(client) {}
  size_t member() const { return client_.current_ % client_.members_.size(); }

  /// After a failure. Errors: kTimeout if no time is left.
  void next(size_t member, const std::string& why, bool timed_out, Deadline deadline) {
    const size_t count = client_.members_.size();
    // The last attempt is mostly cut short; keep an earlier, better reason.
    if (!timed_out || reason_.empty()) reason_ = to_string(client_.members_[member]) + ": " + why;
    client_.current_ = (member + 1) % count;
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("store {} does not answer ({})", client_.name_, reason_));
    }
    if (++failures_ % count != 0) return;
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(pause_, deadline.left()));
    pause_ = std::min<std::chrono::milliseconds>(2 * pause_, 500ms);
  }

 private:
  EtcdClient& client_;
  size_t failures_ = 0;
  std::string reason_;
  std::chrono::milliseconds pause_ = 10ms;
};

EtcdClient::EtcdClient(const EtcdOptions& options)
    : members_(options.members),
      use_tls_(options.use_tls),
      name_(name_of(options)),
      stream_time_(options.stream_time),
      http_(options.tls) {}

EtcdClient::~EtcdClient() = default;

std::string EtcdClient::url(size_t member, const char* path) const {
  return fmt::format("{}://{}{}", use_tls_ ? "https" : "http", to_string(members_[member]), path);
}

Error EtcdClient::foreign(size_t member, const std::string& what) const {
  return {ErrorCode::kMismatch,
          fmt::format("{} is not an etcd server with the v3 API of etcd 3.4 or later: {}",
                      to_string(members_[member]), what)};
}

/// The reason of a first failure, with the settings that may be wrong.
std::string EtcdClient::explained(const HttpClient::Result& result) const {
  const TlsFiles& files = http_.tls();
  if (result.outcome == HttpClient::Outcome::kUntrusted) {
    return fmt::format("{}, with {}{}{}", result.why,
                       files.ca.empty() ? "the system's authorities" : "ca_cert " + files.ca,
                       files.certificate.empty() ? "" : ", ssl_cert " + files.certificate,
                       files.key.empty() ? "" : ", ssl_cert_key " + files.key);
  }
  const bool broken = result.outcome == HttpClient::Outcome::kBroken;
  if (broken && !use_tls_) return result.why + "; a server of https needs protocol=https";
  // A server of http answers with what is no TLS. If it closes first, its reset is all that comes.
  if (result.outcome == HttpClient::Outcome::kNoTls || (broken && use_tls_))
    return result.why + "; a server of http takes neither protocol=https nor files of TLS";
  return result.why;
}

std::optional<EtcdClient::Answer> EtcdClient::answer_of(size_t member, HttpClient::Result result,
                                                        std::string& why) const {
  using Outcome = HttpClient::Outcome;
  why = std::move(result.why);
  if (result.outcome == Outcome::kForeign) throw foreign(member, why);
  Answer answer;
  if (result.outcome == Outcome::kTooLarge) {
    answer.too_large = true;
    return answer;
  }
  if (result.outcome != Outcome::kAnswered) return std::nullopt;
  if (result.status == 200) {
    answer.body = std::move(result.body);
    return answer;
  }
  answer.refusal = etcd::parse_refusal(result.body);
  if (!answer.refusal && result.status < 500)
    throw foreign(member, fmt::format("it answers with status {}", result.status));
  why = answer.refusal ? answer.refusal->message : fmt::format("status {}", result.status);
  if (!answer.refusal || etcd::worth_another_attempt(*answer.refusal)) return std::nullopt;
  return answer;
}

EtcdClient::Answer EtcdClient::call(const char* path, const std::string& body, Deadline deadline) {
  const Deadline least = Deadline::after(kLeastCallTime);
  const Deadline end = deadline.when() < least.when() ? least : deadline;
  Attempts attempts(*this);
  size_t untrusted = 0;  // members in a row
  for (bool in_doubt = false;; in_doubt = true) {
    const size_t member = attempts.member();
    std::string why;
    auto result = http_.post(url(member, path), body, end.at_most(kAttemptTime));
    const auto outcome = result.outcome;
    const bool timed_out = outcome == HttpClient::Outcome::kTimedOut;
    if (!answered_) result.why = explained(result);
    if (auto answer = answer_of(member, std::move(result), why)) {
      answered_ = true;
      answer->in_doubt = in_doubt;
      return std::move(*answer);
    }
    untrusted = outcome == HttpClient::Outcome::kUntrusted ? untrusted + 1 : 0;
    // After a first answer it is worth another attempt: files may be about to be replaced.
    if (!answered_ && untrusted == members_.size()) {
      throw Error(ErrorCode::kUnavailable, fmt::format("store {} cannot be reached ({}: {})", name_,
                                                       to_string(members_[member]), why));
    }
    attempts.next(member, why, timed_out, end);
  }
}

/// One member may lag behind the others. If all do, etcd has lost its data, and a watch would wait
/// for ever. A majority of the members answers the range.
void EtcdClient::check_has_been_at(int64_t revision, Deadline deadline) {
  const auto answer =
      call("/v3/kv/range", etcd::range({std::string(1, '\0'), ""}).dump(), deadline);
  const int64_t now = etcd::parse_range(answer.body).revision;
  if (now >= revision) return;
  throw Error(ErrorCode::kPeerLost,
              fmt::format("store {} has lost its data: it is at revision {} and was at {}", name_,
                          now, revision));
}

std::unique_ptr<EtcdClient::Stream> EtcdClient::take_stream(const etcd::KeyRange& keys,
                                                            int64_t start_revision) {
  const MutexLock lock(mutex_);
  if (!kept_ || kept_->next_revision != start_revision || kept_->keys.first != keys.first ||
      kept_->keys.end != keys.end || kept_->member != current_ % members_.size() ||
      !kept_->can_go_on()) {
    return nullptr;
  }
  return std::move(kept_);
}

void EtcdClient::keep_stream(std::unique_ptr<Stream> stream) {
  if (!stream->can_go_on()) return;
  const MutexLock lock(mutex_);
  kept_ = std::move(stream);
}

bool EtcdClient::is_watching(const etcd::KeyRange& keys, int64_t start_revision) {
  auto stream = take_stream(keys, start_revision);
  if (!stream) return false;
  keep_stream(std::move(stream));
  return true;
}

bool EtcdClient::watch(const etcd::KeyRange& keys, int64_t start_revision, Deadline deadline,
                       const OnMessage& on_message) {
  const Deadline end =
      Deadline::at(std::max(deadline.when(), Deadline::Clock::now()) + kWatchGrace);
  Attempts attempts(*this);
  std::unique_ptr<Stream> stream = take_stream(keys, start_revision);
  while (true) {
    const size_t member = stream ? stream->member : attempts.member();
    if (!stream) stream = std::make_unique<Stream>(*this, member, keys, start_revision);
    // A stream that has received nothing must prove that it is alive, however late that is.
    const bool at_end = deadline.passed() && !stream->heard;
    const Deadline limit =
        (at_end ? end : deadline).at_most(stream->heard ? stream_time_ : kAttemptTime);
    auto result = stream->read(limit, deadline, on_message);
    start_revision = stream->next_revision;
    if (stream->enough) {
      keep_stream(std::move(stream));
      return true;
    }
    if (stream->behind) {
      stream.reset();
      check_has_been_at(start_revision - 1, end);
      attempts.next(member, "it is behind the others", /*timed_out=*/false, end);
      continue;
    }
    if (stream->heard && deadline.passed()) {
      keep_stream(std::move(stream));
      return false;
    }
    const bool timed_out = result.outcome == HttpClient::Outcome::kTimedOut;
    if (stream->heard && timed_out) {
      if (!stream->can_go_on()) stream.reset();
      continue;
    }
    const std::string ended = stream->ended;
    stream.reset();
    std::string why;
    if (auto answer = answer_of(member, std::move(result), why); answer && answer->refusal)
      throw foreign(member, answer->refusal->message);
    if (!ended.empty()) why = ended;
    attempts.next(member, why.empty() ? "the stream ended" : why, timed_out, end);
  }
}

}  // namespace lockstep::inline internal
