#pragma once
// Arguments that several transforms of a classifier have. Private to this folder. Each keeps its
// value if its key is absent or null, and takes one number as a list of one, too: earlier files of
// runs have such. `about`: a line of the manual. Errors: kInvalidArgument, with the key's place.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/steps.h"
#include "lockstep/train/config/config_section.h"

namespace lockstep::inline internal {

enum class ImageKind : uint8_t;

void read_one(ConfigSection& args, const std::string& key, double& value, Range<double> range,
              const std::string& about);
/// From `least` to a million. 32.0 is whole, too.
void read_whole_one(ConfigSection& args, const std::string& key, int64_t& value, int64_t least,
                    const std::string& about);

/// `size`, which is required: one side, or [height, width]. `fallback`: for the manual.
std::vector<int> require_sides(ConfigSection& args, const std::string& about,
                               const std::string& fallback = "");
PictureSize require_size(ConfigSection& args, const std::string& about);

/// torchvision calls it `p`. With both, `prob` counts.
void read_prob(ConfigSection& args, double& prob);

/// Two numbers.
void read_ascending(ConfigSection& args, const std::string& key, std::pair<double, double>& value,
                    Range<double> range, const std::string& about);
/// Two numbers, or a number x for [middle - x, middle + x], as far as `range` goes down.
void read_jitter(ConfigSection& args, const std::string& key, std::pair<double, double>& value,
                 double middle, Range<double> range, const std::string& about);

/// Three numbers each; of small images, which may be grey, also one. `fallback`: for the manual.
void read_mean_and_std(ConfigSection& args, Normalize& normalize, const char* about,
                       const char* fallback, ImageKind images);

}  // namespace lockstep::inline internal
