#include "lockstep/world/bootstrap/pmix_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"

namespace lockstep::inline internal {
namespace {

/// The rest of the key is 0.
void set_key(pmix::Info* info, std::string_view key) {
  key.copy(info->key.data(), info->key.size() - 1);
}

/// End of a call, reported by PMIx's thread. Shared with it, since it may come after the deadline.
struct PmixEnd {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  int status = 0;
};

void note_end(int status, void* data) {
  const std::unique_ptr<std::shared_ptr<PmixEnd>> end(static_cast<std::shared_ptr<PmixEnd>*>(data));
  const std::lock_guard lock((*end)->mutex);
  (*end)->done = true;
  (*end)->status = status;
  (*end)->ended.notify_all();
}

void check(int status, const char* call) {
  if (status != pmix::kSuccess)
    throw Error(ErrorCode::kIo, fmt::format("{} failed with status {}", call, status));
}

void* open_library() {
  for (const char* name : {"libpmix.so.2", "libpmix.so"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  throw Error(ErrorCode::kUnavailable, "libpmix.so.2 is not installed");
}

constexpr const char* kPmixKey = "lockstep.bootstrap";

class PmixExchange final : public RankExchange {
 public:
  void publish(const std::string& line, Deadline deadline) override {
    client_.put(kPmixKey, line);
    client_.fence(deadline);
  }
  std::string receive(Deadline deadline) override {
    client_.fence(deadline);
    return client_.get_text(0, kPmixKey, deadline);
  }

 private:
  PmixClient& client_ = PmixClient::get();
};

}  // namespace

struct PmixClient::Functions {
  int (*init)(pmix::Proc*, const pmix::Info*, size_t) = nullptr;
  int (*finalize)(const pmix::Info*, size_t) = nullptr;
  int (*put)(uint8_t scope, const char* key, pmix::Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence_nb)(const pmix::Proc*, size_t, const pmix::Info*, size_t, pmix::Callback,
                  void*) = nullptr;
  int (*get)(const pmix::Proc*, const char* key, const pmix::Info*, size_t,
             pmix::Value**) = nullptr;

  explicit Functions(void* library) {
    load(library, "PMIx_Init", &init);
    load(library, "PMIx_Finalize", &finalize);
    load(library, "PMIx_Put", &put);
    load(library, "PMIx_Commit", &commit);
    load(library, "PMIx_Fence_nb", &fence_nb);
    load(library, "PMIx_Get", &get);
  }

  template <class Function>
  static void load(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(::dlsym(library, name));
    if (*function == nullptr)
      throw Error(ErrorCode::kUnavailable, fmt::format("libpmix has no {}", name));
  }
};

PmixClient& PmixClient::get() {
  static PmixClient client;
  return client;
}

PmixClient::PmixClient()
    : functions_(std::make_unique<Functions>(open_library())), owner_(::getpid()) {
  const int status = functions_->init(&self_, nullptr, 0);
  if (status != pmix::kSuccess) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("no PMIx server answers (PMIx_Init: status {})", status));
  }
}

PmixClient::~PmixClient() {
  if (::getpid() == owner_) functions_->finalize(nullptr, 0);
}

void PmixClient::put(const std::string& key, const std::string& value) {
  std::string copy = value;
  pmix::Value text;
  text.type = pmix::kString;
  text.data.string = copy.data();
  check(functions_->put(pmix::kGlobal, key.c_str(), &text), "PMIx_Put");
  check(functions_->commit(), "PMIx_Commit");
}

void PmixClient::fence(Deadline deadline) {
  pmix::Proc all = self_;
  all.rank = pmix::kAllRanks;
  pmix::Info collect;
  set_key(&collect, "pmix.collect");
  collect.value.type = pmix::kBool;
  collect.value.data.flag = true;
  auto end = std::make_shared<PmixEnd>();
  auto* passed = new std::shared_ptr<PmixEnd>(end);  // note_end() deletes it
  const int status = functions_->fence_nb(&all, 1, &collect, 1, &note_end, passed);
  if (status != pmix::kSuccess) delete passed;
  check(status, "PMIx_Fence_nb");
  std::unique_lock lock(end->mutex);
  while (!end->ended.wait_until(lock, deadline.when(), [&] { return end->done; })) {
    if (deadline.passed())
      throw Error(ErrorCode::kTimeout, "some rank did not come to the PMIx fence in time");
  }
  check(end->status, "PMIx_Fence");
}

/// Null if it is not known. PMIx should free the value, but has no function for that.
pmix::Value* PmixClient::look_up(uint32_t rank, const char* key, Deadline deadline) {
  pmix::Proc proc = self_;
  proc.rank = rank;
  pmix::Info timeout;
  set_key(&timeout, "pmix.timeout");
  timeout.value.type = pmix::kInt;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(deadline.left()).count();
  timeout.value.data.integer = static_cast<int>(std::clamp<int64_t>(seconds, 1, 3600));
  pmix::Value* value = nullptr;
  return functions_->get(&proc, key, &timeout, 1, &value) == pmix::kSuccess ? value : nullptr;
}

std::string PmixClient::get_text(uint32_t rank, const char* key, Deadline deadline) {
  const pmix::Value* value = look_up(rank, key, deadline);
  if (value == nullptr || value->type != pmix::kString)
    throw Error(ErrorCode::kNotFound, fmt::format("PMIx has no {} of rank {}", key, rank));
  return value->data.string;
}

int PmixClient::get_number(uint32_t rank, const char* key, Deadline deadline) {
  if (const pmix::Value* value = look_up(rank, key, deadline)) {
    if (value->type == pmix::kUint16) return value->data.uint16;
    if (value->type == pmix::kUint32) return static_cast<int>(value->data.uint32);
  }
  throw Error(ErrorCode::kNotFound, fmt::format("PMIx does not know {}", key));
}

PmixJob ask_pmix_server() {
  PmixClient& client = PmixClient::get();
  const uint32_t rank = client.own_rank();
  const auto soon = Deadline::after(std::chrono::seconds(30));
  return {client.get_number(pmix::kAllRanks, "pmix.job.size", soon),
          client.get_number(rank, "pmix.lrank", soon),
          client.get_number(pmix::kAllRanks, "pmix.local.size", soon)};
}

std::shared_ptr<RankExchange> open_pmix_exchange() {
  return std::make_shared<PmixExchange>();
}

}  // namespace lockstep::inline internal
