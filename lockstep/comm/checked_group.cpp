#include "lockstep/comm/checked_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "lockstep/base/log.h"
#include "lockstep/comm/verdict.h"

namespace lockstep {
namespace {

/// FNV-1a, halved so that it and its negative are int64.
int64_t digest_of(const OpHeader& header) {
  uint64_t hash = 0xcbf29ce484222325;
  std::array<std::byte, sizeof header> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  for (const auto byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return static_cast<int64_t>(hash >> 1);
}

std::string trouble_key(const GroupSpec& spec) {
  return spec.name + "/trouble";
}

}  // namespace

/// All ranks see the same: the greatest digest is their own, and so is the least.
void CheckedGroup::require_equal_headers(const Waiting& waiting) {
  const int64_t own = digest_of(header_);
  int64_t ends[] = {own, -own};
  greatest(ends, 2, waiting);
  if (ends[0] == own && ends[1] == -own) return;
  throw Error(ErrorCode::kMismatch, fmt::format("{} on {}: another rank called something else",
                                                describe(header_), spec_.rank_name(spec_.rank)));
}

void CheckedGroup::look_for_trouble() const {
  if (spec_.size == 1) return;  // and may have no store
  for (const auto& key : {verdict_key(spec_), trouble_key(spec_)}) {
    if (!spec_.store->check(std::span(&key, 1), Deadline::after(kStoreLimit))) continue;
    throw decode_verdict(spec_.store->get(key, Deadline::after(kStoreLimit)));
  }
}

void CheckedGroup::throw_agreed(const Error& error, bool is_collective) {
  if (is_harmless(error.code()) || spec_.size == 1) throw Error(error);
  std::optional<Error> agreed;
  try {
    agreed = agree_on_verdict(spec_, is_collective ? explain(error) : error,
                              Deadline::after(kStoreLimit));
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the verdict of group '{}' stays here: {}",
                          spec_.rank_name(spec_.rank), spec_.name, store_error.what()));
  }
  throw agreed ? *agreed : Error(error);
}

/// The engine says neither who is late nor what others called; what each rank was about to do,
/// written into the store, says both.
Error CheckedGroup::explain(const Error& error) const {
  const bool lost = error.code() == ErrorCode::kPeerLost;
  if (!lost && error.code() != ErrorCode::kTimeout && error.code() != ErrorCode::kMismatch) {
    return error;
  }
  Store& store = *spec_.store;
  store.compare_set(trouble_key(spec_), std::nullopt, encode_verdict(error),
                    Deadline::after(kStoreLimit));
  const auto key_of = [&](int rank) { return fmt::format("{}/doing/{}", spec_.name, rank); };
  store.set(key_of(spec_.rank), describe(header_), Deadline::after(kStoreLimit));
  std::vector<std::string> keys;
  for (int rank = 0; rank < spec_.size; ++rank) keys.push_back(key_of(rank));
  const auto grace = std::clamp<std::chrono::milliseconds>(spec_.timeout / 10, 5 * kLook, 2s);
  try {
    store.wait(keys, Deadline::after(grace));
  } catch (const Error& late) {
    if (late.code() != ErrorCode::kTimeout) throw;
  }
  std::vector<int> missing;
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto& key = keys[static_cast<size_t>(rank)];
    if (!store.check(std::span(&key, 1), Deadline::after(kStoreLimit))) {
      missing.push_back(rank);
      continue;
    }
    const auto theirs = store.get(key, Deadline::after(kStoreLimit));
    if (theirs == describe(header_)) continue;
    const bool first = spec_.rank < rank;
    return Error(
        ErrorCode::kMismatch,
        fmt::format("{} called {}, {} called {}", spec_.rank_name(first ? spec_.rank : rank),
                    first ? describe(header_) : theirs, spec_.rank_name(first ? rank : spec_.rank),
                    first ? theirs : describe(header_)));
  }
  if (missing.empty() || error.code() == ErrorCode::kMismatch) return error;
  if (lost) {
    return Error(ErrorCode::kPeerLost, fmt::format("{}: {} went away ({})", describe(header_),
                                                   spec_.rank_names(missing), error.what()));
  }
  return Error(
      ErrorCode::kTimeout,
      fmt::format("{}: timeout after {} s waiting for {}", describe(header_),
                  std::chrono::duration<double>(spec_.timeout).count(), spec_.rank_names(missing)));
}

}  // namespace lockstep
