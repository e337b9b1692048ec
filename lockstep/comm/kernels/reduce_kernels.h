// The kernels, for the instruction set that the including file is compiled for. It defines
// LOCKSTEP_VECTOR_BYTES. Everything is in an unnamed namespace: see reduce_sets.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <stddef.h>

#include "lockstep/comm/kernels/reduce_sets.h"

namespace lockstep::inline internal {

#include "lockstep/comm/kernels/reduce_elements.h"

// Part of one source file per instruction set.
// NOLINTBEGIN(misc-definitions-in-headers,bugprone-branch-clone)
namespace {

struct Add {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return Element::add(a, b);
  }
};
struct Min {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return smaller(a, b);
  }
};
struct Max {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return greater(a, b);
  }
};
struct Multiply {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return Element::multiply(a, b);
  }
};
struct And {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return a & b;
  }
};
struct Or {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return a | b;
  }
};
struct Xor {
  template <class Element, class Vector>
  static Vector apply(Vector a, Vector b) {
    return a ^ b;
  }
};

constexpr int split(int length) {
  int half = 1;
  while (half * 2 < length) half *= 2;
  return half;
}

// The tree over `kNum` inputs, unrolled. One vector of each, with `lanes` valid lanes.
template <class Element, class Op, int kNum>
inline typename Element::Vector tree(const char* const* ins, int64_t offset, int64_t lanes) {
  if constexpr (kNum == 1) {
    return Element::load(ins[0] + offset, lanes);
  } else {
    constexpr int kHalf = split(kNum);
    return Op::template apply<Element>(tree<Element, Op, kHalf>(ins, offset, lanes),
                                       tree<Element, Op, kNum - kHalf>(ins + kHalf, offset, lanes));
  }
}

// The same for any number of inputs.
template <class Element, class Op>
typename Element::Vector any_tree(const char* const* ins, int num, int64_t offset, int64_t lanes) {
  if (num == 1) return Element::load(ins[0] + offset, lanes);
  const int half = split(num);
  return Op::template apply<Element>(any_tree<Element, Op>(ins, half, offset, lanes),
                                     any_tree<Element, Op>(ins + half, num - half, offset, lanes));
}

// kNum = 0: any number of inputs; kOuts = 0: any number of outputs.
template <class Element, class Op, int kNum, int kOuts>
void loop(const ReduceCall& call) {
  constexpr int64_t kLanes = Element::kLanes;
  // Local copies, so that the compiler can assume that the stores do not change the pointers.
  const char* ins[kNum > 0 ? kNum : 1];
  char* outs[kOuts > 0 ? kOuts : 1];
  for (int k = 0; k < kNum; ++k) ins[k] = static_cast<const char*>(call.ins[k]);
  for (int k = 0; k < kOuts; ++k) outs[k] = static_cast<char*>(call.outs[k]);
  const auto step = [&](int64_t at, int64_t lanes) {
    const int64_t offset = at * Element::kBytes;
    typename Element::Vector vector;
    if constexpr (kNum > 0) {
      vector = tree<Element, Op, kNum>(ins, offset, lanes);
    } else {
      vector = any_tree<Element, Op>(reinterpret_cast<const char* const*>(call.ins), call.num_ins,
                                     offset, lanes);
    }
    if (call.divisor != 1) vector = Element::divide(vector, call.divisor);
    if constexpr (kOuts > 0) {
      for (int k = 0; k < kOuts; ++k) Element::store(outs[k] + offset, vector, lanes);
    } else {
      for (int k = 0; k < call.num_outs; ++k) {
        Element::store(static_cast<char*>(call.outs[k]) + offset, vector, lanes);
      }
    }
  };
  int64_t at = 0;
  for (; at + kLanes <= call.count; at += kLanes) step(at, kLanes);
  if (at < call.count) step(at, call.count - at);
}

template <class Element, class Op>
void by_number(const ReduceCall& call) {
  if (call.num_ins == 2 && call.num_outs == 2) return loop<Element, Op, 2, 2>(call);
  if (call.num_ins == 2 && call.num_outs == 1) return loop<Element, Op, 2, 1>(call);
  if (call.num_ins == 4 && call.num_outs == 4) return loop<Element, Op, 4, 4>(call);
  if (call.num_ins == 4) return loop<Element, Op, 4, 0>(call);
  if (call.num_ins == 8) return loop<Element, Op, 8, 0>(call);
  loop<Element, Op, 0, 0>(call);
}

template <class Element>
void by_op(const ReduceCall& call) {
  switch (call.op) {
    case ReduceOp::kMin:
      return by_number<Element, Min>(call);
    case ReduceOp::kMax:
      return by_number<Element, Max>(call);
    case ReduceOp::kProduct:
      return by_number<Element, Multiply>(call);
    default:
      return by_number<Element, Add>(call);
  }
}

void on_bytes(const ReduceCall& call) {
  using Element = IntElement<uint8_t, uint8_t>;
  switch (call.op) {
    case ReduceOp::kBand:
      return by_number<Element, And>(call);
    case ReduceOp::kBor:
      return by_number<Element, Or>(call);
    case ReduceOp::kBxor:
      return by_number<Element, Xor>(call);
    default:
      return by_op<Element>(call);
  }
}

void by_dtype(const ReduceCall& call) {
  switch (call.dtype) {
    case DType::kInt8:
      return by_op<IntElement<uint8_t, int8_t>>(call);
    case DType::kInt16:
      return by_op<IntElement<uint16_t, int16_t>>(call);
    case DType::kInt32:
      return by_op<IntElement<uint32_t, int32_t>>(call);
    case DType::kInt64:
      return by_op<IntElement<uint64_t, int64_t>>(call);
    case DType::kFloat16:
      return by_op<HalfElement<Float16>>(call);
    case DType::kBFloat16:
      return by_op<HalfElement<BFloat16>>(call);
    case DType::kFloat32:
      return by_op<FloatElement<float>>(call);
    case DType::kFloat64:
      return by_op<FloatElement<double>>(call);
    default:
      return on_bytes(call);
  }
}

template <class Element>
void scale_loop(const ScaleCall& call) {
  constexpr int64_t kLanes = Element::kLanes;
  const char* const in = static_cast<const char*>(call.in);
  char* const out = static_cast<char*>(call.out);
  const auto step = [&](int64_t at, int64_t lanes) {
    const int64_t offset = at * Element::kBytes;
    Element::store(out + offset, Element::scale(Element::load(in + offset, lanes), call.factor),
                   lanes);
  };
  int64_t at = 0;
  for (; at + kLanes <= call.count; at += kLanes) step(at, kLanes);
  if (at < call.count) step(at, call.count - at);
}

void scale_by_dtype(const ScaleCall& call) {
  switch (call.dtype) {
    case DType::kFloat16:
      return scale_loop<HalfElement<Float16>>(call);
    case DType::kBFloat16:
      return scale_loop<HalfElement<BFloat16>>(call);
    case DType::kFloat32:
      return scale_loop<FloatElement<float>>(call);
    default:
      return scale_loop<FloatElement<double>>(call);
  }
}

}  // namespace
}  // namespace lockstep::inline internal
// NOLINTEND(misc-definitions-in-headers,bugprone-branch-clone)
