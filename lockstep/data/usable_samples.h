#pragma once
// Samples of a batch of which some may be unusable: a damaged file, a missing one.

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The treatment of an unusable sample.
enum class BadSample : uint8_t {
  kReplaced,  ///< Another one, drawn by (seed, epoch, its key), replaces it.
  kLeftOut,
};

/// The data are no longer those of the start, so places of samples in them mean nothing. No sample
/// replaces another: training ends, or the evaluation that reads them.
struct DataChanged : Error {
  using Error::Error;
};

/// Those of one batch.
template <typename Sample>
struct UsableSamples {
  std::vector<Sample> samples;
  std::vector<std::string> faults;  ///< A line for each unusable one.
};

/// The samples of a batch.
struct DrawnSamples {
  std::span<const int64_t> indices;
  std::span<const int64_t> keys{};  ///< See BatchRows; as many, or none.

  /// Of the random values of sample `index`, which is in the place of indices[row], or is that one.
  int64_t key(size_t row, int64_t index) const { return keys.empty() ? index : keys[row]; }
};

/// Makes the samples of a batch, or their replacements. Samples are 0 .. `size` - 1.
/// `make(index, key)` throws an Error for an unusable one, and `source(sample)` names one in a
/// line. Errors: kCorrupt if a sample and its ten replacements are unusable; DataChanged of `make`.
template <typename Sample, typename Make, typename Source>
UsableSamples<Sample> make_usable(const DrawnSamples& drawn, int64_t size, BadSample bad,
                                  uint64_t seed, int64_t epoch, const Make& make,
                                  const Source& source) {
  UsableSamples<Sample> usable;
  const auto replacement = [&](size_t row, std::string& line) {
    constexpr int kTries = 10;
    const auto key = static_cast<uint64_t>(drawn.key(row, drawn.indices[row]));
    // A stream that no transform draws from: the word of the epoch has its highest bit set.
    Philox random(seed, static_cast<uint32_t>(epoch) | 0x80000000, key);
    for (int i = 0; i < kTries; ++i) {
      const int64_t other = random.below(static_cast<uint32_t>(size));
      try {
        Sample sample = make(other, drawn.key(row, other));
        line += fmt::format("; sample {} ({}) stands in its place", other, source(sample));
        return sample;
      } catch (const DataChanged&) {
        throw;
      } catch (const Error&) {
        continue;  // it has its own warning when its turn comes
      }
    }
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}; nor could {} others, drawn in its place", line, kTries));
  };
  for (size_t row = 0; row < drawn.indices.size(); ++row) {
    const int64_t index = drawn.indices[row];
    try {
      usable.samples.push_back(make(index, drawn.key(row, index)));
    } catch (const DataChanged&) {
      throw;
    } catch (const Error& error) {
      std::string line = fmt::format("sample {} cannot be used: {}", index, error.what());
      if (bad == BadSample::kReplaced) usable.samples.push_back(replacement(row, line));
      usable.faults.push_back(std::move(line));
    }
  }
  return usable;
}

}  // namespace lockstep::inline internal
