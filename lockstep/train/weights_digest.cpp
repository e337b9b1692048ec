#include "lockstep/train/weights_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <torch/nn/module.h>

#include <array>
#include <memory>
#include <vector>

namespace lockstep {

uint64_t weights_digest(const torch::nn::Module& module) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  for (const auto& parameter : module.parameters()) {
    const auto values = parameter.detach().cpu().contiguous();
    EVP_DigestUpdate(hash.get(), values.data_ptr(), values.nbytes());
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  EVP_DigestFinal_ex(hash.get(), bytes.data(), nullptr);
  uint64_t first = 0;
  for (size_t i = 0; i < sizeof(first); ++i) first = first << 8 | bytes[i];
  return first;
}

WeightsComparison compare_weights(uint64_t own, ProcessGroup& group) {
  constexpr size_t kNamed = 8;
  std::vector<uint64_t> all(static_cast<size_t>(group.size()));
  group.all_gather(&own, all.data(), 1, DType::kInt64).wait();
  std::vector<size_t> others;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != all[0] && others.size() < kNamed) others.push_back(rank);
  }
  if (others.empty()) {
    return {true, fmt::format("Weights: {:016x} on {} rank{}", all[0],
                              group.size() == 1 ? "the one" : fmt::format("all {}", group.size()),
                              group.size() == 1 ? "" : "s")};
  }
  return {false, fmt::format("Weights: {:016x} on rank 0, others on rank{} {}", all[0],
                             others.size() == 1 ? "" : "s", fmt::join(others, ", "))};
}

}  // namespace lockstep
