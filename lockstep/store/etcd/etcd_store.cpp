#include "lockstep/store/etcd/etcd_store.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/store/etcd/etcd_store_impl.h"

namespace lockstep::inline internal {
namespace {

/// Limits of one transaction: etcd allows 128 operations by default,
constexpr size_t kMaxOperations = 100;
/// and 1.5 MiB.
constexpr size_t kMaxTransaction = 1 << 20;

StoreReply value_reply(std::optional<std::string> value) {
  StoreReply reply;
  reply.items.push_back({{}, std::move(value)});
  return reply;
}

}  // namespace

EtcdStore::EtcdStore(const EtcdOptions& options) : root_(options.root), client_(options) {}

void EtcdStore::try_out(Deadline deadline) {
  try {
    range({full(""), ""}, deadline, /*keys_only=*/true);
  } catch (const Error& error) {
    rethrow_by_name(error);
  }
}

/// A server with other answers than etcd's is another service.
void EtcdStore::rethrow_by_name(const Error& error) const {
  if (error.code() != ErrorCode::kCorrupt) throw error;
  throw Error(ErrorCode::kMismatch, name() + ": " + error.what());
}

StoreReply EtcdStore::call(StoreRequest request, Deadline deadline) {
  check_lost();
  try {
    switch (request.op) {
      case StoreOp::kSet:
        ask("/v3/kv/put", etcd::put(full(request.keys[0]), request.value).dump(), deadline);
        return {};
      case StoreOp::kSetMany:
        return set_all(request, deadline);
      case StoreOp::kTryGet: {
        auto found = range({full(request.keys[0]), ""}, deadline).items;
        return value_reply(found.empty() ? std::nullopt : std::optional(found[0].value));
      }
      case StoreOp::kCompareSet: {
        const std::string key = full(request.keys[0]);
        etcd::Transaction set;
        set.conditions.push_back(etcd::if_missing(key));
        set.puts.push_back(etcd::put(key, request.value));
        transact(set, deadline);
        return {};
      }
      case StoreOp::kSetWithLease:
        return put_with_lease(request, deadline);
      case StoreOp::kErase:
        return remove(request.keys[0], deadline);
      case StoreOp::kList:
        return keys_below_prefix(request, deadline);
      case StoreOp::kWatch:
        return changes_below(request, deadline);
      default:
        break;
    }
    return refused("no such operation");
  } catch (const Error& error) {
    rethrow_by_name(error);
  }
}

/// The body of a mandatory answer. Errors: kInvalidArgument if etcd refuses.
std::string EtcdStore::ask(const char* path, const std::string& body, Deadline deadline) {
  auto answer = client_.call(path, body, deadline);
  if (answer.refusal) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} refuses: {}", name(), answer.refusal->message));
  }
  if (answer.too_large) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: an answer of more than {} bytes; use a longer prefix", name(),
                            HttpClient::kMaxBytes));
  }
  return std::move(answer.body);
}

etcd::RangeAnswer EtcdStore::range(const etcd::KeyRange& keys, Deadline deadline, bool keys_only) {
  return etcd::parse_range(ask("/v3/kv/range", etcd::range(keys, keys_only).dump(), deadline));
}

/// For transactions that may be carried out twice.
void EtcdStore::transact(const etcd::Transaction& transaction, Deadline deadline) {
  etcd::parse_transaction(ask("/v3/kv/txn", transaction.body(), deadline));
}

// A key may appear once in a transaction.
StoreReply EtcdStore::set_all(const StoreRequest& request, Deadline deadline) {
  etcd::Transaction batch;
  std::set<std::string_view> keys;
  size_t bytes = 0;
  const auto flush = [&] {
    if (!keys.empty()) transact(batch, deadline);
    batch.puts.clear();
    keys.clear();
    bytes = 0;
  };
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const std::string& key = request.keys[i];
    const std::string& value = request.values.at(i);
    const size_t size = key.size() + value.size();
    if (keys.size() == kMaxOperations || bytes + size > kMaxTransaction || keys.contains(key))
      flush();
    batch.puts.push_back(etcd::put(full(key), value));
    keys.insert(key);
    bytes += size;
  }
  flush();
  return {};
}

StoreReply EtcdStore::remove(const std::string& key, Deadline deadline) {
  {
    const MutexLock lock(lease_mutex_);
    leased_.erase(key);
  }
  const auto answer = client_.call("/v3/kv/deleterange", etcd::erase(full(key)).dump(), deadline);
  if (answer.refusal)
    throw Error(ErrorCode::kInvalidArgument, name() + " refuses: " + answer.refusal->message);
  StoreReply reply;
  // An earlier attempt may have erased the key already.
  reply.yes = etcd::parse_deleted(answer.body) > 0 || answer.in_doubt;
  return reply;
}

StoreReply EtcdStore::keys_below_prefix(const StoreRequest& request, Deadline deadline) {
  StoreReply reply;
  auto found = range(etcd::keys_below(full(request.keys[0])), deadline, /*keys_only=*/true);
  for (auto& item : found.items)
    reply.items.push_back({item.key.substr(full("").size()), std::nullopt});
  if (payload_bytes(reply) > kMaxReplyBytes) return refused_as_too_large(request.keys[0]);
  return reply;
}

void EtcdStore::check_lost() {
  const MutexLock lock(mutex_);
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
}

std::shared_ptr<KeyValueStore> connect_etcd_store(const EtcdOptions& options, Deadline deadline) {
  if (options.members.empty() || options.root.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "etcd store: at least one member and a root of at least one byte are needed");
  }
  auto store = std::make_shared<EtcdStore>(options);
  store->try_out(deadline);
  return store;
}

}  // namespace lockstep::inline internal
