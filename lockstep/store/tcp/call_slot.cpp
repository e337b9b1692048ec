#include "lockstep/store/tcp/call_slot.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lockstep/base/processor.h"
#include "lockstep/base/sealed_memory.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

template <class T>
SharedObject<T>::SharedObject(int memory) {
  if (!is_sealed_memory(memory, sizeof(T))) return;
  void* const place =
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
  if (place != MAP_FAILED) object_ = static_cast<T*>(place);
}

template <class T>
SharedObject<T>::~SharedObject() {
  if (object_ != nullptr) ::munmap(static_cast<void*>(object_), sizeof(T));
}

template class SharedObject<CallSlotMemory>;
template class SharedObject<FlagMemory>;

std::unique_ptr<ClientCallSlot> ClientCallSlot::from(std::vector<UniqueFd> passed, int64_t index) {
  if (passed.size() != 2 || index < 0 || std::cmp_greater_equal(index, FlagMemory::kSlots))
    return nullptr;
  std::unique_ptr<ClientCallSlot> slot(new ClientCallSlot);
  slot->memory_ = SharedObject<CallSlotMemory>(passed[0].get());
  slot->flags_ = SharedObject<FlagMemory>(passed[1].get());
  if (!slot->memory_ || !slot->flags_) return nullptr;
  slot->word_ = static_cast<size_t>(index) / 64;
  slot->flag_ = uint64_t{1} << (index % 64);
  return slot;
}

bool ClientCallSlot::put(std::string_view body) {
  if (body.size() > CallSlotMemory::kRoom) return false;
  std::memcpy(memory_->request_body, body.data(), body.size());
  memory_->request.size = static_cast<uint32_t>(body.size());
  memory_->request.count.store(++count_);
  // `server_sleeps` is set before the server's last look at the flags. So either that look finds
  // this flag, or server_sleeps() is true here. It stays so until the server is awake: the first
  // client that sees it may be stopped before it wakes the server.
  flags_->raised[word_].fetch_or(flag_);
  return true;
}

void ClientCallSlot::await(uint32_t count, Spinning& spinning,
                           std::chrono::milliseconds slice) const {
  poll_spinning(spinning, static_cast<int>(slice.count()), [&](int wait_ms) {
    const auto ready = [&] { return has_answered(count); };
    if (wait_ms == 0) {
      pause_processor();
    } else {
      memory_->reply.came.wait(ready, std::chrono::milliseconds(wait_ms));
    }
    return ready() ? 1 : 0;
  });
}

std::optional<std::string> ClientCallSlot::take_reply() const {
  const size_t size = std::min<size_t>(memory_->reply.size, CallSlotMemory::kRoom);
  if (size == 0) return std::nullopt;
  return std::string(memory_->reply_body, size);
}

std::optional<std::string> ServerCallSlot::take_request() {
  const uint32_t count = memory_->request.count.load();
  if (count == taken_) return std::nullopt;
  taken_ = count;
  const size_t size = memory_->request.size;
  if (size > CallSlotMemory::kRoom) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("a message of {} bytes in shared memory, at most {} are allowed", size,
                            CallSlotMemory::kRoom));
  }
  return std::string(memory_->request_body, size);
}

bool ServerCallSlot::answer(std::string_view body) {
  if (body.size() > CallSlotMemory::kRoom) return false;
  std::memcpy(memory_->reply_body, body.data(), body.size());
  finish(body.size());
  return true;
}

void ServerCallSlot::finish(size_t size) {
  memory_->reply.size = static_cast<uint32_t>(size);
  memory_->reply.count.store(taken_);
  memory_->reply.came.signal();
}

bool CallSlots::prepare() {
  if (flags_) return true;
  flag_memory_ = make_sealed_memory(kCallSlotMemfd, sizeof(FlagMemory));
  if (!flag_memory_) return false;
  flags_ = SharedObject<FlagMemory>(flag_memory_.get());
  clients_.assign(FlagMemory::kSlots, 0);
  return static_cast<bool>(flags_);
}

std::optional<CallSlots::Opened> CallSlots::open(uint64_t client) {
  if (!prepare()) return std::nullopt;
  const auto place = std::find(clients_.begin(), clients_.end(), 0);
  if (place == clients_.end()) return std::nullopt;
  UniqueFd memory = make_sealed_memory(kCallSlotMemfd, sizeof(CallSlotMemory));
  if (!memory) return std::nullopt;
  SharedObject<CallSlotMemory> mapped(memory.get());
  if (!mapped) return std::nullopt;
  const auto index = static_cast<size_t>(place - clients_.begin());
  Opened opened;
  opened.slot = std::make_unique<ServerCallSlot>(std::move(mapped), index);
  opened.descriptors = {memory.get(), flag_memory_.get()};
  opened.memory = std::move(memory);
  *place = client;
  return opened;
}

bool CallSlots::any_raised() const {
  if (!flags_) return false;
  return std::any_of(std::begin(flags_->raised), std::end(flags_->raised),
                     [](const auto& word) { return word.load() != 0; });
}

bool CallSlots::any_raised_soon() const {
  constexpr int kLooks = 32;
  if (!flags_) return false;
  for (int i = 0; i < kLooks; ++i) {
    if (any_raised()) return true;
    pause_processor();
  }
  return false;
}

const std::vector<uint64_t>& CallSlots::take_raised() {
  raised_.clear();
  if (!flags_) return raised_;
  for (size_t i = 0; i < std::size(flags_->raised); ++i) {
    auto& word = flags_->raised[i];
    uint64_t flags = word.load() == 0 ? 0 : word.exchange(0);
    for (; flags != 0; flags &= flags - 1) {
      const auto bit = static_cast<size_t>(std::countr_zero(flags));
      const uint64_t client = clients_[64 * i + bit];
      if (client != 0) raised_.push_back(client);
    }
  }
  return raised_;
}

bool CallSlots::about_to_sleep() {
  if (!flags_) return false;
  flags_->server_sleeps.store(1);
  return any_raised();
}

void CallSlots::awake() {
  if (flags_) flags_->server_sleeps.store(0);
}

}  // namespace lockstep::inline internal
