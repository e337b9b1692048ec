#include "lockstep/comm/native/shm/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lockstep::shm {

#ifdef __SSE2__

void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64;
  const size_t before = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  const size_t begin = std::min(bytes, before);
  const size_t end = begin + (bytes - begin) / kLine * kLine;
  std::memcpy(to, from, begin);
  for (size_t at = begin; at < end; at += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + at);
    auto* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + end, from + end, bytes - end);
  _mm_sfence();  // a later store of an atomic does not order these stores
}

#else

void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace lockstep::shm
