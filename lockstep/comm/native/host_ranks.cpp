#include "lockstep/comm/native/host_ranks.h"

#include <algorithm>

#include "lockstep/comm/native/tcp/schedule.h"

namespace lockstep::inline internal {
namespace {

/// Enough for groups that only exchange small values.
constexpr int64_t kSmallAreaBytes = 64 << 10;
constexpr int64_t kAreas = 4;  // slots of even and odd rounds, results of even and odd rounds

}  // namespace

HostRanks::HostRanks(std::unique_ptr<ShmGroup> shm, int local, int num_local)
    : shm_(std::move(shm)), local_(local), num_local_(num_local) {}

std::vector<std::byte*> HostRanks::enter(const OpHeader& header, const void* data, int64_t bytes,
                                         const Waiting& waiting) {
  if (alone()) return {const_cast<std::byte*>(static_cast<const std::byte*>(data))};
  return shm_->enter(header, data, bytes, waiting);
}

void HostRanks::sync(const Waiting& waiting) {
  if (!alone()) shm_->sync(waiting);
}

void HostRanks::finish() {
  if (!alone()) shm_->finish();
}

void HostRanks::prepare(int64_t bytes, const Waiting& waiting) {
  if (alone() || area_bytes_ >= std::min(bytes, tcp::kRoundBytes)) return;
  const int64_t area_bytes = bytes <= kSmallAreaBytes ? kSmallAreaBytes : tcp::kRoundBytes;
  try {
    staging_ = shm_->allocate(kAreas * area_bytes, waiting);
  } catch (const Error& error) {
    // Unlike in allocate(), this is not harmless: other hosts are in the operation already.
    if (error.code() != ErrorCode::kUnavailable) throw;
    throw Error(ErrorCode::kIo, error.what());
  }
  area_bytes_ = area_bytes;
  const auto header = header_of(OpKind::kAllocate, staging_->bytes());
  staging_of_ = shm_->enter(header, staging_->data(), staging_->bytes(), waiting);
  shm_->sync(waiting);
}

std::byte* HostRanks::area(int local, int64_t index) const {
  if (staging_of_.empty()) return nullptr;  // operations of no bytes prepare nothing
  return staging_of_[static_cast<size_t>(local)] + index * area_bytes_;
}

}  // namespace lockstep::inline internal
