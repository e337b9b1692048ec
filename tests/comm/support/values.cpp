#include "tests/comm/support/values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lockstep/comm/reduce_tree.h"

namespace lockstep::testing {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Element types: what is stored, what is computed with, and the way between.
template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static Wide widen(Stored x) { return x; }
  static Stored narrow(Wide x) { return x; }
};
struct Half {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored x) { return float_from_half(x); }
  static Stored narrow(Wide x) { return half_from_float(x); }
};
struct Brain {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored x) { return float_from_bfloat16(x); }
  static Stored narrow(Wide x) { return bfloat16_from_float(x); }
};

template <class Visit>
auto visit(DType dtype, const Visit& with) {
  switch (dtype) {
    case DType::kUint8:
      return with(Plain<uint8_t>());
    case DType::kInt32:
      return with(Plain<int32_t>());
    case DType::kInt64:
      return with(Plain<int64_t>());
    case DType::kFloat16:
      return with(Half());
    case DType::kBFloat16:
      return with(Brain());
    case DType::kFloat32:
      return with(Plain<float>());
    default:
      return with(Plain<double>());
  }
}

template <class Element>
typename Element::Wide get(const Bytes& bytes, int64_t index) {
  typename Element::Stored stored;
  std::memcpy(&stored, bytes.data() + index * int64_t{sizeof stored}, sizeof stored);
  return Element::widen(stored);
}
template <class Element>
void put(Bytes& bytes, int64_t index, typename Element::Wide value) {
  const typename Element::Stored stored = Element::narrow(value);
  std::memcpy(bytes.data() + index * int64_t{sizeof stored}, &stored, sizeof stored);
}

template <class Element>
typename Element::Wide combine(ReduceOp op, typename Element::Wide a, typename Element::Wide b) {
  using Wide = typename Element::Wide;
  if (op == ReduceOp::kMin) return a < b || a != a ? a : b;
  if (op == ReduceOp::kMax) return a > b || a != a ? a : b;
  if constexpr (std::is_integral_v<Wide>) {
    using Wrapping = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
  } else {
    return Element::widen(Element::narrow(a + b));
  }
}

template <class Element>
typename Element::Wide tree(ReduceOp op, const std::vector<Bytes>& ins, int lo, int hi,
                            int64_t index) {
  if (hi - lo == 1) return get<Element>(ins[static_cast<size_t>(lo)], index);
  const int mid = tree_mid(lo, hi);
  return combine<Element>(op, tree<Element>(op, ins, lo, mid, index),
                          tree<Element>(op, ins, mid, hi, index));
}

}  // namespace

uint16_t half_from_float(float value) {
  if (std::isnan(value)) return 0x7e00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = -14;
  if (magnitude >= 0x1p-14) exponent = std::ilogb(magnitude);
  // In units of the last place; nearbyint rounds to even.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign | (units + ((exponent + 14) << 10)));
}

float float_from_half(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 0x3ff;
  float value = 0;
  if (exponent == 31) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else {
    value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

uint16_t bfloat16_from_float(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t below = bits & 0xffff;
  const bool up = below > 0x8000 || (below == 0x8000 && (bits & 0x10000) != 0);
  return static_cast<uint16_t>((bits >> 16) + (up ? 1 : 0));
}

float float_from_bfloat16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

Bytes make_values(DType dtype, int64_t count, int rank, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(count * size_of(dtype)));
  visit(dtype, [&](auto element) {
    using Element = decltype(element);
    using Wide = typename Element::Wide;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t random =
          mix(mix(seed + static_cast<uint64_t>(rank)) + static_cast<uint64_t>(i));
      if constexpr (std::is_integral_v<Wide>) {
        put<Element>(bytes, i, static_cast<Wide>(random));
      } else {
        const double mantissa = static_cast<double>(random >> 11) * 0x1p-53 + 0.5;
        const int exponent = static_cast<int>(random % 9) - 4;
        put<Element>(
            bytes, i,
            static_cast<Wide>(std::ldexp((random & 1024) ? mantissa : -mantissa, exponent)));
      }
    }
    return 0;
  });
  return bytes;
}

Bytes reference(DType dtype, ReduceOp op, const std::vector<Bytes>& ins) {
  Bytes out(ins[0].size());
  visit(dtype, [&](auto element) {
    using Element = decltype(element);
    using Wide = typename Element::Wide;
    const int num = static_cast<int>(ins.size());
    const auto count = static_cast<int64_t>(out.size()) / size_of(dtype);
    for (int64_t i = 0; i < count; ++i) {
      Wide value = tree<Element>(op, ins, 0, num, i);
      if (op == ReduceOp::kAvg) value = static_cast<Wide>(value / static_cast<Wide>(num));
      put<Element>(out, i, value);
    }
    return 0;
  });
  return out;
}

double element_as_double(DType dtype, const Bytes& bytes, int64_t index) {
  return visit(dtype, [&](auto element) {
    return static_cast<double>(get<decltype(element)>(bytes, index));
  });
}

double reference_in_double(DType dtype, ReduceOp op, const std::vector<Bytes>& ins, int64_t index) {
  double value = element_as_double(dtype, ins[0], index);
  for (size_t k = 1; k < ins.size(); ++k) {
    const double next = element_as_double(dtype, ins[k], index);
    value = op == ReduceOp::kMin   ? std::fmin(value, next)
            : op == ReduceOp::kMax ? std::fmax(value, next)
                                   : value + next;
  }
  return op == ReduceOp::kAvg ? value / static_cast<double>(ins.size()) : value;
}

}  // namespace lockstep::testing
