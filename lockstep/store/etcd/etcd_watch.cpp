// The part of EtcdStore that watches keys.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/store/etcd/etcd_store_impl.h"

namespace lockstep::inline internal {
namespace {

/// etcd sends a watch's missed events some time after its first message, which is empty.
constexpr auto kHistoryTime = 1s;
/// How long an open stream may take to deliver earlier writes.
constexpr auto kStreamLag = 100ms;

/// The last state of each key that changed.
struct FoundChanges {
  size_t cut;  ///< Bytes before the name of each key in etcd.
  int64_t version;
  std::map<std::string, std::optional<std::string>> states = {};

  void note(etcd::Item item, bool erased) {
    version = std::max(version, item.mod_revision);
    states[item.key.substr(cut)] = erased ? std::nullopt : std::optional(std::move(item.value));
  }
  /// Those after `since`, from the keys of that time and from all that is there now.
  void compare(std::set<std::string> before, int64_t since, etcd::RangeAnswer now) {
    for (auto& item : now.items) {
      before.erase(item.key.substr(cut));
      if (item.mod_revision > since) note(std::move(item), /*erased=*/false);
    }
    for (const auto& key : before) states[key] = std::nullopt;
    version = now.revision;
  }
};

}  // namespace

bool DeliveredKeys::follows(const std::string& prefix, int64_t version) const {
  return version != 0 && version == version_ && prefix.starts_with(prefix_);
}

std::optional<std::set<std::string>> DeliveredKeys::at(const std::string& prefix,
                                                       int64_t version) const {
  if (version == 0) return std::set<std::string>();
  if (!follows(prefix, version)) return std::nullopt;
  auto keys = keys_;
  std::erase_if(keys, [&](const auto& key) { return !key.starts_with(prefix); });
  return keys;
}

void DeliveredKeys::note(const std::string& prefix, int64_t since, const StoreReply& reply) {
  if (since == 0) {
    keys_.clear();
  } else if (!follows(prefix, since)) {
    return;  // another caller's watch
  }
  if (prefix != prefix_)
    std::erase_if(keys_, [&](const auto& key) { return !key.starts_with(prefix); });
  prefix_ = prefix;
  version_ = reply.number;
  for (const auto& [key, value] : reply.items) {
    if (value) {
      keys_.insert(key);
    } else {
      keys_.erase(key);
    }
  }
}

/// Whether there may be a change since `version` that a watch would not deliver by the deadline.
bool EtcdStore::may_miss(const etcd::KeyRange& keys, int64_t version, Deadline deadline) {
  if (!client_.is_watching(keys, version + 1)) {
    return deadline.left() < kHistoryTime &&
           range({full(""), ""}, deadline, /*keys_only=*/true).revision > version;
  }
  // An open stream delivers it at once, apart from rare exceptions.
  if (deadline.left() > kStreamLag) return false;
  const auto found =
      etcd::parse_range(ask("/v3/kv/range", etcd::newest(keys).dump(), deadline)).items;
  return !found.empty() && found[0].mod_revision > version;
}

StoreReply EtcdStore::changes_below(const StoreRequest& request, Deadline deadline) {
  const std::string& prefix = request.keys[0];
  const int64_t since = request.number;
  const auto keys = etcd::keys_below(full(prefix));
  FoundChanges found{full("").size(), since};
  if (since == 0) {
    found.compare({}, since, range(keys, deadline));
  } else if (may_miss(keys, since, deadline)) {
    deadline = Deadline::after(kHistoryTime);  // existing changes must be found, however late it is
  }
  int64_t compacted = 0;
  const auto on_message = [&](const etcd::WatchAnswer& answer) {
    compacted = answer.compact_revision;
    for (const auto& event : answer.events) found.note(event.item, event.erased);
    return found.states.empty() && compacted == 0;
  };
  while (found.states.empty()) {
    client_.watch(keys, found.version + 1, deadline, on_message);
    if (compacted == 0) break;
    auto before = delivered_at(prefix, since);
    if (!before) {
      return refused(fmt::format("version {} is too old, changes since {} are known; begin with 0",
                                 since, compacted));
    }
    found.compare(std::move(*before), since, range(keys, deadline));
    compacted = 0;
  }
  StoreReply reply;
  reply.number = found.version;
  for (auto& [key, value] : found.states) reply.items.push_back({key, std::move(value)});
  if (payload_bytes(reply) > kMaxReplyBytes) return refused_as_too_large(prefix);
  note_delivered(prefix, since, reply);
  return reply;
}

std::optional<std::set<std::string>> EtcdStore::delivered_at(const std::string& prefix,
                                                             int64_t version) {
  const MutexLock lock(mutex_);
  return delivered_.at(prefix, version);
}

void EtcdStore::note_delivered(const std::string& prefix, int64_t since, const StoreReply& reply) {
  const MutexLock lock(mutex_);
  delivered_.note(prefix, since, reply);
}

}  // namespace lockstep::inline internal
