#include "lockstep/comm/native/shm/mailbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep::shm {
namespace {

/// Copies between `data` and the ring from stream position `at` on, around its end.
template <class Copy>
void around(uint64_t at, int64_t bytes, const Copy& copy) {
  const auto place = static_cast<int64_t>(at % kChannelBytes);
  const int64_t first = std::min(bytes, kChannelBytes - place);
  copy(place, 0, static_cast<size_t>(first));
  if (first < bytes) copy(0, first, static_cast<size_t>(bytes - first));
}

}  // namespace

Mailbox::Mailbox(const GroupSpec& spec, Control control, Meeting& meeting)
    : spec_(spec), control_(control), meeting_(meeting), kept_(static_cast<size_t>(spec.size)) {}

void Mailbox::send(const void* data, int64_t count, DType dtype, int destination, int tag,
                   const Waiting& waiting) {
  const Envelope envelope{count, tag, dtype, {}};
  write(destination, &envelope, sizeof envelope, waiting);
  write(destination, data, envelope.bytes(), waiting);
}

void Mailbox::recv(void* data, int64_t count, DType dtype, int source, int tag,
                   const Waiting& waiting) {
  auto& kept = kept_[static_cast<size_t>(source)];
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [&](const Kept& one) { return one.envelope.tag == tag; });
  if (found != kept.end()) {
    check(found->envelope, count, dtype, source);
    if (count > 0) std::memcpy(data, found->data.data(), found->data.size());
    kept.erase(found);
    return;
  }
  while (true) {
    Envelope envelope;
    read(source, &envelope, sizeof envelope, waiting);
    if (envelope.tag == tag) {
      check(envelope, count, dtype, source);
      return read(source, data, envelope.bytes(), waiting);
    }
    auto& other = kept.emplace_back();
    other.envelope = envelope;
    other.data.resize(static_cast<size_t>(envelope.bytes()));
    read(source, other.data.data(), envelope.bytes(), waiting);
  }
}

void Mailbox::write(int destination, const void* data, int64_t bytes, const Waiting& waiting) {
  auto& channel = control_.channel(spec_.rank, destination);
  const auto* from = static_cast<const std::byte*>(data);
  uint64_t written = channel.written.load();
  while (bytes > 0) {
    const auto room = [&] {
      return kChannelBytes - static_cast<int64_t>(written - channel.read.load());
    };
    if (room() == 0) {
      meeting_.wait(
          channel.changed, [&] { return room() > 0; },
          [&] { return std::vector<int>{destination}; },
          [&] { return Doing{"send to " + spec_.rank_name(destination)}; }, waiting);
    }
    const int64_t now = std::min(bytes, room());
    around(written, now, [&](int64_t place, int64_t offset, size_t size) {
      std::memcpy(channel.ring + place, from + offset, size);
    });
    from += now;
    bytes -= now;
    written += static_cast<uint64_t>(now);
    channel.written.store(written);
    channel.changed.signal();
  }
}

void Mailbox::read(int source, void* data, int64_t bytes, const Waiting& waiting) {
  auto& channel = control_.channel(source, spec_.rank);
  auto* to = static_cast<std::byte*>(data);
  uint64_t read = channel.read.load();
  while (bytes > 0) {
    const auto there = [&] { return static_cast<int64_t>(channel.written.load() - read); };
    if (there() == 0) {
      meeting_.wait(
          channel.changed, [&] { return there() > 0; }, [&] { return std::vector<int>{source}; },
          [&] { return Doing{"recv from " + spec_.rank_name(source)}; }, waiting);
    }
    const int64_t now = std::min(bytes, there());
    around(read, now, [&](int64_t place, int64_t offset, size_t size) {
      std::memcpy(to + offset, channel.ring + place, size);
    });
    to += now;
    bytes -= now;
    read += static_cast<uint64_t>(now);
    channel.read.store(read);
    channel.changed.signal();
  }
}

void Mailbox::check(const Envelope& came, int64_t count, DType dtype, int source) {
  if (came.count == count && came.dtype == dtype) return;
  const Error error(ErrorCode::kMismatch,
                    fmt::format("{} sent {} {}, {} called recv for {} {} (tag {})",
                                spec_.rank_name(source), came.count, to_string(came.dtype),
                                spec_.rank_name(spec_.rank), count, to_string(dtype), came.tag));
  meeting_.fail(error);
  throw error;
}

}  // namespace lockstep::shm
