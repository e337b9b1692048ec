#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// A rank's values after the multiplication of kPremulSum: a copy, unless the factor is 1.
class Scaled {
 public:
  Scaled(const void* in, int64_t count, DType dtype, double factor) : data_(in) {
    if (factor == 1) return;
    copy_ =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(count * size_of(dtype)));
    scale(in, copy_.get(), count, dtype, factor);
    data_ = copy_.get();
  }
  const void* data() const { return data_; }

 private:
  const void* data_;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace lockstep::inline internal
