#pragma once

#include <cstdlib>
#include <cstring>

#include "lockstep/error.h"
#include "lockstep/process_group.h"

namespace lockstep {

/// What allocate() gives where the engine shares no memory: this rank's alone, 64-byte aligned,
/// zeroed.
class PrivateBuffer : public SharedBuffer {
 public:
  explicit PrivateBuffer(int64_t bytes) : bytes_(bytes) {
    constexpr size_t kAlign = 64;
    const auto size = (static_cast<size_t>(bytes) / kAlign + 1) * kAlign;
    data_ = std::aligned_alloc(kAlign, size);
    if (data_ == nullptr) throw Error(ErrorCode::kUnavailable, "allocate: no memory");
    std::memset(data_, 0, size);
  }
  ~PrivateBuffer() override { std::free(data_); }
  PrivateBuffer(const PrivateBuffer&) = delete;
  PrivateBuffer& operator=(const PrivateBuffer&) = delete;
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
  void* data_;
};

}  // namespace lockstep
