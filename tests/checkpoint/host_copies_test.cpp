#include "lockstep/checkpoint/host_copies.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/checkpoint/small_net.h"

namespace lockstep {
namespace {

constexpr int64_t kMany = 1 << 20;  // elements of a large tensor

TEST(HostCopies, HaveEqualValuesInMemoryOfTheirOwn) {
  const at::Tensor large = at::rand({1024, kMany / 1024});
  const TensorMap tensors = {
      {"empty", at::empty({0, 3})},
      {"scalar", at::arange(7).sum()},
      {"small", at::rand({3, 5})},
      {"large", large},
      {"odd", at::rand({kMany + 1})},  // what follows it starts aligned
      {"transposed", large.t()},
      {"every second", at::rand({2 * kMany}).slice(0, 0, 2 * kMany, 2)},
      {"expanded", at::rand({1, 1024}).expand({1024, 1024})},
      {"whole numbers", at::arange(kMany)},
  };
  const TensorMap copies = host_copies(tensors);
  ASSERT_EQ(copies.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& copy = copies.at(name);
    EXPECT_TRUE(same_bits(copy, tensor)) << name;
    EXPECT_TRUE(copy.is_non_overlapping_and_dense()) << name;
    EXPECT_TRUE(tensor.numel() == 0 || copy.data_ptr() != tensor.data_ptr()) << name;
  }
  EXPECT_EQ(copies.at("transposed").strides(), large.t().strides());
  const at::Tensor before = large.clone();
  large.add_(1);
  EXPECT_TRUE(same_bits(copies.at("large"), before));
}

TEST(HostCopies, OneOutlivesTheOthers) {
  std::optional<TensorMap> copies =
      host_copies({{"a", at::rand({kMany})}, {"b", at::arange(kMany)}});
  const at::Tensor kept = copies->at("b");
  copies.reset();
  EXPECT_TRUE(same_bits(kept, at::arange(kMany)));
}

}  // namespace
}  // namespace lockstep
