// Each fuzz target with its seeds, and with parts of them. A target aborts if it finds a fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
#include "fuzz_targets.inc"
#undef FUZZ_TARGET

namespace {

namespace fs = std::filesystem;

struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

const std::vector<FuzzTarget> kTargets = {
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.inc"
#undef FUZZ_TARGET
};

std::vector<fs::path> seeds_of(const std::string& name) {
  std::vector<fs::path> seeds;
  const fs::path folder = fs::path(LOCKSTEP_FUZZ_CORPUS) / name;
  for (const auto& entry : fs::directory_iterator(folder)) seeds.push_back(entry.path());
  return seeds;
}

class FuzzCorpus : public testing::TestWithParam<FuzzTarget> {};

/// Of its own memory, so that AddressSanitizer sees a read behind the end.
void run_with(const FuzzTarget& target, const std::string& seed, size_t size) {
  const auto bytes = std::make_unique<uint8_t[]>(size);
  std::copy_n(seed.begin(), size, bytes.get());
  target.run(bytes.get(), size);
}

TEST_P(FuzzCorpus, TheTargetFindsNoFault) {
  const auto seeds = seeds_of(GetParam().name);
  ASSERT_FALSE(seeds.empty());
  run_with(GetParam(), "", 0);
  constexpr size_t kParts = 8;
  for (const auto& path : seeds) {
    // Before it runs: a fault ends the program.
    std::cout << "seed " << path.filename().string() << std::endl;
    const std::string seed = lockstep::read_file(path);
    for (size_t part = 1; part <= kParts; ++part) {
      run_with(GetParam(), seed, seed.size() * part / kParts);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
