#pragma once
// Test data, and the expected result of a collective, bit for bit, computed one element at a time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/types.h"

namespace lockstep::testing {

using Bytes = std::vector<std::byte>;

std::vector<DType> all_dtypes();
/// The reductions that `dtype` has.
std::vector<ReduceOp> ops_of(DType dtype);
/// The largest deviation from `value` for another order of operations over a few of make_values().
double tolerance_of(DType dtype, double value);

/// The contribution of `rank`: integers over a wide range; bools 0 and 1; floats of mixed sign and
/// size, so that the order of additions changes bits.
Bytes make_values(DType dtype, int64_t count, int rank, uint64_t seed);

/// `rank`'s CollectiveOptions::factor in all tests of kPremulSum.
double factor_of(int rank);

/// The reduction of ins[0], ins[1], ... in the order that reduce_tree.h defines. kPremulSum: of
/// values that are already multiplied.
Bytes reference(DType dtype, ReduceOp op, const std::vector<Bytes>& ins);

/// One element of the reduction of make_values(dtype, _, rank, seed) over `size` ranks: its bytes
/// go to `out`. kPremulSum: with factor_of(rank). Throws unless it is also close to the same in
/// float64.
void reference_element(DType dtype, ReduceOp op, int size, uint64_t seed, int64_t index,
                       std::byte* out);

bool is_floating(DType dtype);
/// As elements of a floating-point type.
Bytes bytes_of(DType dtype, const std::vector<double>& values);

/// For a complex number, the real part.
double element_as_double(DType dtype, const Bytes& bytes, int64_t index);

uint16_t half_from_float(float value);
float float_from_half(uint16_t half);
uint16_t bfloat16_from_float(float value);
float float_from_bfloat16(uint16_t value);

}  // namespace lockstep::testing
