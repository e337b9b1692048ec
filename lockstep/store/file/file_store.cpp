#include "lockstep/store/file/file_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/store/file/client_files.h"
#include "lockstep/store/file/journal.h"
#include "lockstep/store/heartbeats.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep::inline internal {
namespace {

/// How often the folder is checked for changes by other hosts, which the kernel does not report.
constexpr auto kPollInterval = 50ms;
/// How often holders are checked.
constexpr auto kLookInterval = 100ms;

bool is_change(StoreOp op) {
  return op == StoreOp::kSet || op == StoreOp::kSetMany || op == StoreOp::kCompareSet ||
         op == StoreOp::kSetWithLease || op == StoreOp::kErase;
}

RequestFrame end_of(uint64_t client) {
  RequestFrame record;
  record.id = client;
  record.request.op = StoreOp::kCancel;
  return record;
}

/// Makes the folder, of this user alone, if it does not exist.
std::filesystem::path private_folder(std::filesystem::path folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw io_error("make " + folder.string());
  return folder;
}

/// Without inotify changes are seen a little later.
UniqueFd watch_folder(const std::filesystem::path& folder) {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // A file open for writing is closed when its process ends, for whatever reason.
  if (fd &&
      ::inotify_add_watch(fd.get(), folder.c_str(), IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE) < 0)
    fd.reset();
  return fd;
}

/// True if something has happened in the folder.
bool drain(const UniqueFd& inotify) {
  alignas(inotify_event) std::array<char, 4096> events;
  bool any = false;
  while (inotify && ::read(inotify.get(), events.data(), events.size()) > 0) any = true;
  return any;
}

}  // namespace

/// Every client applies all changes of the journal to its own StoreState, so all have the same
/// keys, versions and holders. Waits are entries of that state; one of the waiting threads watches
/// the folder.
class FileStore final : public BasicRequestStore<KeyValueStore> {
 public:
  FileStore(std::filesystem::path folder, const std::string& secret, Deadline deadline);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

 private:
  /// A call in progress; it lives on its thread's stack.
  struct Call {
    std::optional<StoreReply> reply;
    CondVar wake;  ///< Its reply is there, or no thread watches the folder.
  };
  class Registration;

  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store in " + folder_.string(); }

  StoreReply change(StoreRequest request, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  StoreReply ask(const StoreRequest& request, Deadline deadline, MutexLock& lock)
      LOCKSTEP_REQUIRES(mutex_);
  std::optional<StoreReply> reply_without_change(const StoreRequest& request)
      LOCKSTEP_REQUIRES(mutex_);

  void step(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void look_around(Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  std::vector<uint64_t> find_dead() LOCKSTEP_REQUIRES(mutex_);
  void end_clients(const std::vector<uint64_t>& dead, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void catch_up() LOCKSTEP_REQUIRES(mutex_);
  void carry_out(RequestFrame record) LOCKSTEP_REQUIRES(mutex_);
  void deliver(std::vector<StoreAnswer> answers) LOCKSTEP_REQUIRES(mutex_);

  const std::filesystem::path folder_;
  const UniqueFd inotify_;

  Mutex mutex_;
  ClientFiles client_files_ LOCKSTEP_GUARDED_BY(mutex_);
  Journal journal_ LOCKSTEP_GUARDED_BY(mutex_);
  StoreState state_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_request_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call*> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  bool watched_ LOCKSTEP_GUARDED_BY(mutex_) = false;  ///< A thread watches the folder.
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);      ///< Why this client was disconnected; empty:
                                                      ///< it was not.

  ListeningClock clock_ LOCKSTEP_GUARDED_BY(mutex_);
  Heartbeats heartbeats_ LOCKSTEP_GUARDED_BY(mutex_);
  /// Last seen heartbeats, by holder.
  std::map<uint64_t, uint64_t> last_numbers_ LOCKSTEP_GUARDED_BY(mutex_);
  Deadline next_look_ LOCKSTEP_GUARDED_BY(mutex_) = Deadline::after(std::chrono::seconds(0));
};

/// Registers a call while it runs. At its end another thread takes over the watch if necessary.
class FileStore::Registration {
 public:
  Registration(FileStore& store, uint64_t id, Call& call) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS
      : store_(store),
        id_(id) {
    store_.calls_[id_] = &call;
  }
  ~Registration() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
    store_.calls_.erase(id_);
    if (!store_.watched_ && !store_.calls_.empty())
      store_.calls_.begin()->second->wake.notify_one();
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  FileStore& store_;
  uint64_t id_;
};

FileStore::FileStore(std::filesystem::path folder, const std::string& secret, Deadline deadline)
    : folder_(private_folder(std::move(folder))),
      inotify_(watch_folder(folder_)),
      client_files_(folder_),
      journal_(folder_, secret),
      clock_(Deadline::Clock::now()) {
  const MutexLock lock(mutex_);
  const Journal::Lock right(journal_, deadline);
  try {
    const bool anybody = !client_files_.others().empty();
    if (!journal_.join(anybody)) journal_.begin();
  } catch (const Error&) {
    // Removes the file that the lock made in a foreign folder.
    std::error_code ignored;
    if (std::filesystem::file_size(journal_.path(), ignored) == 0) journal_.remove();
    throw;
  }
  client_files_.create_own();
  catch_up();
}

FileStore::~FileStore() {
  if (in_child()) return;
  const MutexLock lock(mutex_);
  try {
    const Journal::Lock right(journal_, Deadline::after(1s));
    catch_up();
    if (state_.leased_by(client_files_.id()) != nullptr)
      journal_.append(end_of(client_files_.id()));
    if (client_files_.others().empty()) journal_.remove();
  } catch (const std::exception&) {
    // Other clients find it dead, and the folder's next user finds no live client.
  }
}

StoreReply FileStore::call(StoreRequest request, Deadline deadline) {
  MutexLock lock(mutex_);
  if (lost_.empty()) look_around(deadline);
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
  if (is_change(request.op)) return change(std::move(request), deadline);
  return ask(request, deadline, lock);
}

StoreReply FileStore::change(StoreRequest request, Deadline deadline) {
  const Deadline least = Deadline::after(1s);
  const Journal::Lock right(journal_, deadline.when() < least.when() ? least : deadline);
  catch_up();
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
  if (request.op == StoreOp::kSetWithLease) {
    client_files_.write_heartbeat();
    if (auto reply = reply_without_change(request)) return std::move(*reply);
  }
  RequestFrame record{client_files_.id(), std::move(request)};
  journal_.append(record);
  auto answers = state_.submit({client_files_.id(), ++last_request_}, std::move(record.request));
  StoreReply reply = std::move(answers.front().reply);
  answers.erase(answers.begin());
  deliver(std::move(answers));
  return reply;
}

/// The reply to a set_with_lease() that changes nothing.
std::optional<StoreReply> FileStore::reply_without_change(const StoreRequest& request) {
  const std::string& key = request.keys[0];
  StoreRequest look;
  look.op = StoreOp::kTryGet;
  look.keys = {key};
  const auto value =
      state_.submit({client_files_.id(), ++last_request_}, look).front().reply.items.at(0).value;
  if (!value) return std::nullopt;
  const auto* leased = state_.leased_by(client_files_.id());
  StoreReply reply;
  reply.yes = leased != nullptr && leased->contains(key);
  const bool same = reply.yes && *value == request.value &&
                    leased->find(key)->second == std::chrono::milliseconds(request.number);
  return reply.yes && !same ? std::nullopt : std::optional(reply);
}

StoreReply FileStore::ask(const StoreRequest& request, Deadline deadline, MutexLock& lock) {
  Call own;
  const StoreTicket ticket{client_files_.id(), ++last_request_};
  const Registration registration(*this, ticket.request, own);
  deliver(state_.submit(ticket, request));
  while (!own.reply && !deadline.passed()) {
    step(lock, own, deadline);
    if (!own.reply && !lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
  }
  if (!own.reply) own.reply = state_.cancel(ticket).value();
  return std::move(*own.reply);
}

/// Waits a while for news: by watching the folder, or for the thread that already does.
void FileStore::step(MutexLock& lock, Call& own, Deadline deadline) {
  if (watched_) {
    own.wake.wait_until(lock, deadline.when());
    return;
  }
  watched_ = true;
  pollfd item{inotify_.get(), POLLIN, 0};  // where there is none, poll() only sleeps
  const int wait_ms = deadline.at_most(kPollInterval).left_poll_ms();
  mutex_.unlock();
  ::poll(&item, 1, wait_ms);
  mutex_.lock();
  watched_ = false;
  look_around(deadline);
}

/// Reads other clients' changes, and ends dead clients.
void FileStore::look_around(Deadline deadline) {
  const bool news = drain(inotify_);
  catch_up();
  if (!lost_.empty() || (!news && !next_look_.passed())) return;
  next_look_ = Deadline::after(kLookInterval);
  const auto dead = find_dead();
  if (!dead.empty()) end_clients(dead, deadline);
}

void FileStore::end_clients(const std::vector<uint64_t>& dead, Deadline deadline) {
  try {
    const Journal::Lock right(journal_, deadline.at_most(1s));
    catch_up();
    for (const uint64_t client : dead) {
      if (state_.leased_by(client) == nullptr) continue;  // another client was faster
      journal_.append(end_of(client));
      deliver(state_.drop_client(client));
      client_files_.remove(client);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;  // the next round finds them again
  }
}

/// Holders whose process has ended, or that exceeded their allowed silence.
std::vector<uint64_t> FileStore::find_dead() {
  const auto now = clock_.advance(Deadline::Clock::now(), kLookInterval);
  std::vector<uint64_t> dead;
  for (const uint64_t client : state_.holders()) {
    if (client == client_files_.id()) continue;
    const auto number = client_files_.read_heartbeat(client);
    if (!number) {
      dead.push_back(client);
      continue;
    }
    const auto [it, is_new] = last_numbers_.try_emplace(client, *number);
    const auto ttl = state_.shortest_ttl(client).value();
    if (is_new || it->second != *number) heartbeats_.expect(client, ttl, now);
    it->second = *number;
  }
  for (const uint64_t client :
       heartbeats_.silent(now, [&](uint64_t holder) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
         return state_.shortest_ttl(holder);
       })) {
    log_warn(fmt::format("{}: nothing was heard of a client for {} ms, so its keys are erased",
                         name(), state_.shortest_ttl(client)->count()));
    dead.push_back(client);
  }
  for (const uint64_t client : dead) {
    last_numbers_.erase(client);
    heartbeats_.forget(client);
  }
  return dead;
}

void FileStore::catch_up() {
  try {
    journal_.read([this](RequestFrame record)
                      LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS { carry_out(std::move(record)); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost) throw;
    lost_ = std::string("has disconnected this client: ") + error.what();
  }
  if (lost_.empty()) return;
  for (const auto& [id, call] : calls_) call->wake.notify_one();
}

void FileStore::carry_out(RequestFrame record) {
  if (record.request.op == StoreOp::kCancel) {
    if (record.id == client_files_.id())
      lost_ = "has disconnected this client: nothing was heard of it, so its keys are erased";
    deliver(state_.drop_client(record.id));
  } else if (is_change(record.request.op)) {
    auto answers = state_.submit({record.id, 0}, std::move(record.request));
    answers.erase(answers.begin());
    deliver(std::move(answers));
  } else {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} has a record that changes nothing", journal_.path().string()));
  }
}

void FileStore::deliver(std::vector<StoreAnswer> answers) {
  for (auto& answer : answers) {
    const auto it = calls_.find(answer.to.request);
    if (it == calls_.end()) continue;  // its caller has met an error
    it->second->reply = std::move(answer.reply);
    it->second->wake.notify_one();
  }
}

std::shared_ptr<KeyValueStore> join_file_store(const std::filesystem::path& folder,
                                               const std::string& secret, Deadline deadline) {
  return std::make_shared<FileStore>(folder, secret, deadline);
}

}  // namespace lockstep::inline internal
