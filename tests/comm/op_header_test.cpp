#include "lockstep/comm/op_header.h"
#include "lockstep/comm/kernels/element_types.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

OpHeader all_reduce_header() {
  OpHeader header;
  header.sequence = 3;
  header.kind = OpKind::kAllReduce;
  header.count = 10;
  header.dtype = DType::kFloat32;
  header.op = ReduceOp::kAvg;
  return header;
}

TEST(OpHeader, EqualOnesDoNotMismatch) {
  EXPECT_FALSE(mismatch(all_reduce_header(), "rank 0", all_reduce_header(), "rank 1"));
  EXPECT_FALSE(malformed(all_reduce_header()));
}

TEST(OpHeader, AMismatchNamesBothSides) {
  OpHeader other = all_reduce_header();
  other.kind = OpKind::kBroadcast;
  other.root = 2;
  EXPECT_EQ(mismatch(all_reduce_header(), "rank 0", other, "rank 1"),
            "rank 0 called all_reduce #3 (float32, 10 elements, avg), rank 1 called broadcast #3 "
            "(float32, 10 elements, root 2)");
}

TEST(OpHeader, EveryFieldIsCompared) {
  for (int field = 0; field < 6; ++field) {
    OpHeader other = all_reduce_header();
    if (field == 0) other.sequence = 4;
    if (field == 1) other.count = 11;
    if (field == 2) other.root = 1;
    if (field == 3) other.kind = OpKind::kReduceScatter;
    if (field == 4) other.dtype = DType::kInt32;
    if (field == 5) other.op = ReduceOp::kSum;
    EXPECT_TRUE(mismatch(all_reduce_header(), "a", other, "b")) << field;
  }
}

TEST(OpHeader, ForeignBytesAreMalformed) {
  for (int field = 0; field < 6; ++field) {
    OpHeader other = all_reduce_header();
    if (field == 0) other.kind = static_cast<OpKind>(99);
    if (field == 1) other.dtype = static_cast<DType>(kNumDTypes);
    if (field == 2) other.op = static_cast<ReduceOp>(kNumReduceOps);
    if (field == 3) other.count = -1;
    if (field == 4) other.sequence = 0;
    if (field == 5) other.unused = 1;
    EXPECT_TRUE(malformed(other)) << field;
    EXPECT_FALSE(describe(other).empty());
  }
}

}  // namespace
}  // namespace lockstep
