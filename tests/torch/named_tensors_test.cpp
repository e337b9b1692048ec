#include "lockstep/named_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

at::Tensor one(int64_t value) {
  return at::full({1}, value, at::kLong);
}

TEST(NamedTensors, AreFoundByNameAndByPlace) {
  const Tensors list = {{"left", one(1)}, {"", one(2)}, {"box.right", one(3)}};
  EXPECT_EQ(list["left"].item<int64_t>(), 1);
  EXPECT_EQ(list["box.right"].item<int64_t>(), 3);
  EXPECT_EQ(list[0].item<int64_t>(), 1);
  EXPECT_EQ(list.back().item<int64_t>(), 3);
  EXPECT_EQ(list.names(), (Names{"left", "", "box.right"}));
  EXPECT_TRUE(list.has("left"));
  EXPECT_FALSE(list.has("right"));
  EXPECT_FALSE(list.has(""));
}

TEST(NamedTensors, AreAVector) {
  const auto sum = [](const std::vector<at::Tensor>& list) {
    int64_t total = 0;
    for (const auto& tensor : list) total += tensor.item<int64_t>();
    return total;
  };
  Tensors list = std::vector<at::Tensor>{one(1), one(2)};
  EXPECT_EQ(sum(list), 3);
  EXPECT_EQ(sum({one(4), one(5)}), 9);
  EXPECT_EQ(Tensors(2, one(7)).names(), (Names{"", ""}));
  list = {one(4)};
  list.push_back(one(5));
  EXPECT_EQ(sum(list), 9);
  EXPECT_EQ(at::TensorList(list).size(), 2U);
}

TEST(NamedTensors, NamesStayAsTensorsChange) {
  Tensors list = {one(1)};
  list.add("second", one(2));
  list.push_back(one(3));
  list.add("fourth", one(4));
  Tensors copy = list;
  for (auto& tensor : copy) tensor = tensor * 10;
  EXPECT_EQ(copy.names(), (Names{"", "second", "", "fourth"}));
  EXPECT_EQ(copy["second"].item<int64_t>(), 20);
  EXPECT_EQ(list["second"].item<int64_t>(), 2);
  copy = {one(8), one(9)};
  EXPECT_FALSE(copy.has("second"));
  list.clear();
  list.push_back(one(5));
  EXPECT_EQ(list.names(), Names{""});
}

TEST(NamedTensors, ErrorsHaveTheNames) {
  const auto refusal = [](const auto& body) {
    const Error error = error_of(body);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  const Tensors list = {{"quarter", one(1)}, {"distance", one(2)}};
  EXPECT_EQ(refusal([&] { list["qarter"]; }),
            "no tensor is named 'qarter': there are quarter, distance, did you mean 'quarter'?");
  EXPECT_EQ(refusal([&] { list["box"]; }), "no tensor is named 'box': there are quarter, distance");
  EXPECT_EQ(refusal([] {
              Tensors({one(1), one(2)})["box"];
            }),
            "no tensor is named 'box': the given ones have no names");
  EXPECT_EQ(refusal([] {
              Tensors{{"box", one(1)}, {"box", one(2)}};
            }),
            "two tensors are named 'box'");
}

TEST(NamedTensors, APlaceBeyondTheListIsAnError) {
  const auto refusal = [](const auto& body) {
    const Error error = error_of(body);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  Tensors list = {one(1), one(2)};
  const Tensors& same = list;
  const std::string why = "there is no tensor [2]: the list has 2 tensors, [0] to [1]";
  EXPECT_EQ(refusal([&] { (void)list[2]; }), why);
  EXPECT_EQ(refusal([&] { (void)same[2]; }), why);
  const int before = -1;
  EXPECT_EQ(refusal([&] { (void)list[static_cast<size_t>(before)]; }),
            "there is no tensor [-1]: the list has 2 tensors, [0] to [1]; use back() for the last "
            "one");
  EXPECT_EQ(same.front().item<int64_t>(), 1);
  EXPECT_EQ(same.back().item<int64_t>(), 2);
  const std::string none = "there is no tensor [0]: the list is empty";
  list.clear();
  EXPECT_EQ(refusal([&] { (void)list[0]; }), none);
  EXPECT_EQ(refusal([&] { (void)same.front(); }), none);
  EXPECT_EQ(refusal([&] { (void)same.back(); }), none);
  EXPECT_EQ(refusal([&] { (void)same["box"]; }), "no tensor is named 'box': the list is empty");
}

}  // namespace
}  // namespace lockstep
