// Element types as vectors of LOCKSTEP_VECTOR_BYTES: load, operations and store. Included by
// reduce_kernels.h and compress_kernels.h only.

// Part of one source file per instruction set, in an unnamed namespace; x != x means NaN.
// NOLINTBEGIN(misc-definitions-in-headers,misc-redundant-expression)
namespace {

constexpr int kVectorBytes = LOCKSTEP_VECTOR_BYTES;

template <class T, int kBytes = kVectorBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
using Floats = VectorOf<float>::type;
using Words = VectorOf<uint32_t>::type;
using Halves = VectorOf<uint16_t, kVectorBytes / 2>::type;
constexpr int kFloatLanes = kVectorBytes / 4;

// Loads `lanes` elements; the rest of the vector is zero.
template <class Vector>
inline Vector load_lanes(const void* from, int64_t bytes) {
  Vector vector{};
  if (bytes == static_cast<int64_t>(sizeof vector)) {
    __builtin_memcpy(&vector, from, sizeof vector);
  } else {
    __builtin_memcpy(&vector, from, static_cast<size_t>(bytes));
  }
  return vector;
}

template <class Vector>
inline void store_lanes(void* to, const Vector& vector, int64_t bytes) {
  if (bytes == static_cast<int64_t>(sizeof vector)) {
    __builtin_memcpy(to, &vector, sizeof vector);
  } else {
    __builtin_memcpy(to, &vector, static_cast<size_t>(bytes));
  }
}

// a unless b is smaller (greater); NaN wins from either side; b when both are equal.
template <class Vector>
inline Vector smaller(Vector a, Vector b) {
  return ((a < b) | (a != a)) ? a : b;
}
template <class Vector>
inline Vector greater(Vector a, Vector b) {
  return ((a > b) | (a != a)) ? a : b;
}

// Multiplication by the inverse of a power of two gives the bits of the division, at ten times its
// speed.
template <class Vector, class T>
inline Vector divide_floats(Vector a, int divisor) {
  const T d = static_cast<T>(divisor);
  return (divisor & (divisor - 1)) == 0 ? a * (T{1} / d) : a / d;
}

template <class T>
struct FloatElement {
  using Vector = typename VectorOf<T>::type;
  static constexpr int kBytes = sizeof(T);
  static constexpr int kLanes = kVectorBytes / kBytes;
  static Vector load(const void* from, int64_t lanes) {
    return load_lanes<Vector>(from, lanes * kBytes);
  }
  static void store(void* to, Vector vector, int64_t lanes) {
    store_lanes(to, vector, lanes * kBytes);
  }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector multiply(Vector a, Vector b) { return a * b; }
  static Vector divide(Vector a, int divisor) { return divide_floats<Vector, T>(a, divisor); }
  static Vector scale(Vector a, double factor) { return a * static_cast<T>(factor); }
};

// Unsigned, so that sums and products wrap; Signed is the type for comparison and division.
template <class Unsigned, class Signed>
struct IntElement {
  using Vector = typename VectorOf<Signed>::type;
  using Wrapping = typename VectorOf<Unsigned>::type;
  static constexpr int kBytes = sizeof(Signed);
  static constexpr int kLanes = kVectorBytes / kBytes;
  static Vector load(const void* from, int64_t lanes) {
    return load_lanes<Vector>(from, lanes * kBytes);
  }
  static void store(void* to, Vector vector, int64_t lanes) {
    store_lanes(to, vector, lanes * kBytes);
  }
  static Vector add(Vector a, Vector b) { return (Vector)((Wrapping)a + (Wrapping)b); }
  static Vector multiply(Vector a, Vector b) { return (Vector)((Wrapping)a * (Wrapping)b); }
  static Vector divide(Vector a, int divisor) {
    for (int i = 0; i < kLanes; ++i) a[i] = static_cast<Signed>(a[i] / divisor);
    return a;
  }
};

struct BFloat16 {
  static Floats widen(Halves halves) {
    return (Floats)(__builtin_convertvector(halves, Words) << 16);
  }
  static Halves narrow(Floats floats) {
    const Words bits = (Words)floats;
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Words result = floats != floats ? (bits >> 16) | 0x40 : rounded;
    return __builtin_convertvector(result, Halves);
  }
};

#if LOCKSTEP_VECTOR_BYTES == 64
// The masked forms, because GCC 12 warns of an uninitialised operand in the plain ones.
struct Float16 {
  static Floats widen(Halves halves) {
    return (Floats)_mm512_maskz_cvtph_ps(0xffff, (__m256i)halves);
  }
  static Halves narrow(Floats floats) {
    return (Halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)floats, _MM_FROUND_TO_NEAREST_INT);
  }
};
#elif LOCKSTEP_VECTOR_BYTES == 32
struct Float16 {
  static Floats widen(Halves halves) { return (Floats)_mm256_cvtph_ps((__m128i)halves); }
  static Halves narrow(Floats floats) {
    return (Halves)_mm256_cvtps_ph((__m256)floats, _MM_FROUND_TO_NEAREST_INT);
  }
};
#else
struct Float16 {
  static Floats widen(Halves halves) {
    const Words wide = __builtin_convertvector(halves, Words);
    const Words sign = (wide & 0x8000) << 16;
    const Words rest = wide & 0x7fff;
    // 2^-24 is the last place of a subnormal half.
    const Words small = (Words)(__builtin_convertvector(rest, Floats) * 0x1p-24f);
    const Words normal = (rest << 13) + (112u << 23);
    const Words special =
        (rest << 13) | 0x7f800000 | (rest > 0x7c00 ? Words{} + 0x400000 : Words{});
    return (Floats)(sign | (rest < 0x400 ? small : rest >= 0x7c00 ? special : normal));
  }
  static Halves narrow(Floats floats) {
    const Words bits = (Words)floats;
    const Words sign = (bits >> 16) & 0x8000;
    const Words rest = bits & 0x7fffffff;
    // Adding 0.5 moves the last place of a subnormal half to the end of the sum, where the FPU
    // rounds.
    const Words small = (Words)((Floats)rest + 0.5f) - 0x3f000000;
    const Words normal = (rest + 0xfff + ((rest >> 13) & 1) - (112u << 23)) >> 13;
    const Words nan = 0x7e00 | ((rest >> 13) & 0x3ff);
    Words half = rest < 0x38800000 ? small : normal;
    half = rest >= 0x477ff000 ? Words{} + 0x7c00 : half;
    half = rest > 0x7f800000 ? nan : half;
    return __builtin_convertvector(sign | half, Halves);
  }
};
#endif

// Two-byte floats, computed in float32 and rounded after every operation of the tree.
template <class Format>
struct HalfElement {
  using Vector = Floats;
  static constexpr int kBytes = 2;
  static constexpr int kLanes = kFloatLanes;
  static Vector load(const void* from, int64_t lanes) {
    return Format::widen(load_lanes<Halves>(from, lanes * kBytes));
  }
  static void store(void* to, Vector vector, int64_t lanes) {
    store_lanes(to, Format::narrow(vector), lanes * kBytes);
  }
  static Vector add(Vector a, Vector b) { return Format::widen(Format::narrow(a + b)); }
  static Vector multiply(Vector a, Vector b) { return Format::widen(Format::narrow(a * b)); }
  static Vector divide(Vector a, int divisor) { return divide_floats<Vector, float>(a, divisor); }
  static Vector scale(Vector a, double factor) { return a * static_cast<float>(factor); }
};

}  // namespace
// NOLINTEND(misc-definitions-in-headers,misc-redundant-expression)
