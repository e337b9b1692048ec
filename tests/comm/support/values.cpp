#include "tests/comm/support/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/reduce_tree.h"

namespace lockstep::testing {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Element types: the stored type, the type of computation, and the conversions.
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

/// A byte that is 0 or 1: sums and products are "or" and "and".
struct Truth {
  using Stored = uint8_t;
  using Wide = bool;
  static Wide widen(Stored x) { return x != 0; }
  static Stored narrow(Wide x) { return x ? 1 : 0; }
};

/// Calls `with` for an element type, and for the number of its elements in one of `dtype`.
template <class Visit>
auto visit(DType dtype, const Visit& with) {
  switch (dtype) {
    case DType::kBool:
      return with(Truth(), 1);
    case DType::kUint8:
      return with(Plain<uint8_t>(), 1);
    case DType::kInt8:
      return with(Plain<int8_t>(), 1);
    case DType::kInt16:
      return with(Plain<int16_t>(), 1);
    case DType::kInt32:
      return with(Plain<int32_t>(), 1);
    case DType::kInt64:
      return with(Plain<int64_t>(), 1);
    case DType::kFloat16:
      return with(Half(), 1);
    case DType::kBFloat16:
      return with(Brain(), 1);
    case DType::kFloat32:
      return with(Plain<float>(), 1);
    case DType::kFloat64:
      return with(Plain<double>(), 1);
    case DType::kComplex64:
      return with(Plain<float>(), 2);
    default:
      return with(Plain<double>(), 2);
  }
}

template <class Element>
typename Element::Wide get(const Bytes& bytes, int64_t index) {
  typename Element::Stored stored;
  std::memcpy(&stored, bytes.data() + index * int64_t{sizeof stored}, sizeof stored);
  return Element::widen(stored);
}
/// Unsigned and wide enough to avoid promotion to int: then everything wraps.
template <class Wide>
uint64_t wrapping(Wide value) {
  if constexpr (std::is_signed_v<Wide>) return static_cast<std::make_unsigned_t<Wide>>(value);
  return value;
}

template <class Wide>
Wide combine_integers(ReduceOp op, Wide a, Wide b) {
  const uint64_t x = wrapping(a), y = wrapping(b);
  switch (op) {
    case ReduceOp::kProduct:
      return static_cast<Wide>(x * y);
    case ReduceOp::kBand:
      return static_cast<Wide>(x & y);
    case ReduceOp::kBor:
      return static_cast<Wide>(x | y);
    case ReduceOp::kBxor:
      return static_cast<Wide>(x ^ y);
    default:
      return static_cast<Wide>(x + y);
  }
}

template <class Wide>
bool is_nan(Wide value) {
  if constexpr (std::is_floating_point_v<Wide>) return std::isnan(value);
  return false;
}

template <class Element>
typename Element::Wide combine(ReduceOp op, typename Element::Wide a, typename Element::Wide b) {
  using Wide = typename Element::Wide;
  if (op == ReduceOp::kMin) return a < b || is_nan(a) ? a : b;
  if (op == ReduceOp::kMax) return a > b || is_nan(a) ? a : b;
  if constexpr (std::is_integral_v<Wide>) {
    return combine_integers<Wide>(op, a, b);
  } else {
    return Element::widen(Element::narrow(op == ReduceOp::kProduct ? a * b : a + b));
  }
}

/// The tree over leaf(lo) ... leaf(hi - 1).
template <class Element, class Leaf>
typename Element::Wide tree(ReduceOp op, const Leaf& leaf, int lo, int hi) {
  if (hi - lo == 1) return leaf(lo);
  const int mid = tree_mid(lo, hi);
  return combine<Element>(op, tree<Element>(op, leaf, lo, mid), tree<Element>(op, leaf, mid, hi));
}

template <class Element, class Leaf>
typename Element::Stored reduced(ReduceOp op, const Leaf& leaf, int num) {
  auto value = tree<Element>(op, leaf, 0, num);
  using Wide = typename Element::Wide;
  if (op == ReduceOp::kAvg) {
    if constexpr (std::is_same_v<Wide, int64_t>) {
      value /= num;
    } else if constexpr (std::is_integral_v<Wide>) {
      value = static_cast<Wide>(static_cast<int>(value) / num);
    } else {
      value /= static_cast<Wide>(num);
    }
  }
  return Element::narrow(value);
}

template <class Element>
typename Element::Stored value_at(int rank, uint64_t seed, int64_t index) {
  using Wide = typename Element::Wide;
  const uint64_t random =
      mix(mix(seed + static_cast<uint64_t>(rank)) + static_cast<uint64_t>(index));
  if constexpr (std::is_same_v<Wide, bool>) {
    return random % 3 == 0 ? 0 : 1;
  } else if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(random);
  } else {
    const double mantissa = static_cast<double>(random >> 11) * 0x1p-53 + 0.5;
    // 2^-4 to 2^4.
    const double scale = static_cast<double>(1 << random % 9) * 0x1p-4;
    return Element::narrow(
        static_cast<Wide>((random & 1024) != 0 ? mantissa * scale : -mantissa * scale));
  }
}

/// The value that `rank` contributes.
template <class Element>
typename Element::Wide leaf_at(ReduceOp op, int rank, uint64_t seed, int64_t index) {
  using Wide = typename Element::Wide;
  const Wide value = Element::widen(value_at<Element>(rank, seed, index));
  if constexpr (std::is_integral_v<Wide>) {
    return value;
  } else {
    if (op != ReduceOp::kPremulSum) return value;
    return Element::widen(Element::narrow(value * static_cast<Wide>(factor_of(rank))));
  }
}

double combine_doubles(ReduceOp op, double a, double b) {
  if (op == ReduceOp::kMin) return std::fmin(a, b);
  if (op == ReduceOp::kMax) return std::fmax(a, b);
  return op == ReduceOp::kProduct ? a * b : a + b;
}

/// Throws unless `got` is close to the reduction in float64, in another order.
template <class Element, class Leaf>
void require_near(double got, ReduceOp op, const Leaf& leaf, int size) {
  double want = static_cast<double>(leaf(0));
  double largest = std::fabs(want);
  for (int k = 1; k < size; ++k) {
    const auto next = static_cast<double>(leaf(k));
    want = combine_doubles(op, want, next);
    largest = std::max(largest, std::fabs(next));
  }
  if (op == ReduceOp::kAvg) want /= size;
  // One rounding per operation.
  const double unit = std::is_same_v<Element, Brain>  ? 0x1p-8
                      : std::is_same_v<Element, Half> ? 0x1p-11
                                                      : 0x1p-24;
  const double scale = op == ReduceOp::kProduct ? std::fabs(want) : largest * size;
  const double smallest = std::is_same_v<Element, Half> ? 0x1p-24 * std::pow(16.0, size) : 0;
  if (!std::isfinite(got) && op == ReduceOp::kProduct) return;  // the maximum of float16 is 65504
  if (std::fabs(got - want) > unit * scale * size + (op == ReduceOp::kProduct ? smallest : 0)) {
    throw std::logic_error("the reference tree is far from the float64 reduction");
  }
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

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kNumDTypes; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

std::vector<ReduceOp> ops_of(DType dtype) {
  std::vector<ReduceOp> all;
  for (int i = 0; i < kNumReduceOps; ++i) {
    if (can_reduce(dtype, static_cast<ReduceOp>(i))) all.push_back(static_cast<ReduceOp>(i));
  }
  return all;
}

double tolerance_of(DType dtype, double value) {
  const DType part = parts_of(dtype).dtype;
  const double unit = part == DType::kBFloat16  ? 0x1p-8
                      : part == DType::kFloat16 ? 0x1p-11
                      : part == DType::kFloat32 ? 0x1p-24
                                                : 0x1p-53;
  return kind_of(part) == DTypeKind::kFloating ? unit * (64 + 16 * std::fabs(value)) : 0;
}

double factor_of(int rank) {
  return 0.3 + rank;
}

Bytes make_values(DType dtype, int64_t count, int rank, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(count * size_of(dtype)));
  visit(dtype, [&](auto element, int each) {
    using Element = decltype(element);
    for (int64_t i = 0; i < count * each; ++i) {
      const auto stored = value_at<Element>(rank, seed, i);
      std::memcpy(bytes.data() + i * int64_t{sizeof stored}, &stored, sizeof stored);
    }
  });
  return bytes;
}

Bytes reference(DType dtype, ReduceOp op, const std::vector<Bytes>& ins) {
  Bytes out(ins[0].size());
  visit(dtype, [&](auto element, int each) {
    using Element = decltype(element);
    const int num = static_cast<int>(ins.size());
    const auto count = static_cast<int64_t>(out.size()) / size_of(dtype);
    for (int64_t i = 0; i < count * each; ++i) {
      const auto leaf = [&](int k) { return get<Element>(ins[static_cast<size_t>(k)], i); };
      const auto stored = reduced<Element>(op, leaf, num);
      std::memcpy(out.data() + i * int64_t{sizeof stored}, &stored, sizeof stored);
    }
  });
  return out;
}

void reference_element(DType dtype, ReduceOp op, int size, uint64_t seed, int64_t index,
                       std::byte* out) {
  visit(dtype, [&](auto element, int each) {
    using Element = decltype(element);
    for (int part = 0; part < each; ++part) {
      const auto leaf = [&](int k) { return leaf_at<Element>(op, k, seed, index * each + part); };
      const auto stored = reduced<Element>(op, leaf, size);
      std::memcpy(out + part * sizeof stored, &stored, sizeof stored);
      if constexpr (!std::is_integral_v<typename Element::Wide>) {
        require_near<Element>(static_cast<double>(Element::widen(stored)), op, leaf, size);
      }
    }
  });
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

Bytes bytes_of(DType dtype, const std::vector<double>& values) {
  Bytes bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  std::byte* place = bytes.data();
  const auto put = [&](auto value) {
    std::memcpy(place, &value, sizeof value);
    place += sizeof value;
  };
  for (const double value : values) {
    const auto single = static_cast<float>(value);
    if (dtype == DType::kFloat16) {
      put(half_from_float(single));
    } else if (dtype == DType::kBFloat16) {
      put(bfloat16_from_float(single));
    } else if (dtype == DType::kFloat32) {
      put(single);
    } else {
      put(value);
    }
  }
  return bytes;
}

double element_as_double(DType dtype, const Bytes& bytes, int64_t index) {
  return visit(dtype, [&](auto element, int each) {
    return static_cast<double>(get<decltype(element)>(bytes, index * each));
  });
}

}  // namespace lockstep::testing
