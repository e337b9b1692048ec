#pragma once
// WebDataset: tar archives ("shards") whose members of one base name make a sample, such as
// 000017.jpg and 000017.cls.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/data/pictures/index.h"

namespace lockstep::inline internal {

/// The names that `pattern` stands for: {000..127} counts with as many digits, {a,b} lists, and
/// several braces give all combinations, the last one changing fastest. Errors: kInvalidArgument
/// for a brace without its partner, a range that falls, or more than a million names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// The parts of a member's name: up to the first dot behind its folders, and the rest in lower
/// case. Both are empty for a hidden file or a name without a dot.
struct MemberName {
  std::string sample;
  std::string extension;
};
MemberName split_member_name(const std::string& name);

/// The samples of all shards, in the order of the shards and of each sample's first member. A
/// sample has one picture (jpg, jpeg, png, bmp, webp) and its class as a number (cls); members with
/// other extensions are passed over. `pattern`: see expand_braces().
///
/// Shards are read by several threads, their headers and classes alone. Memory: 16 bytes a sample.
/// `known`: a file in which samples are kept from run to run, if there are 10,000 or more; empty:
/// none. Of a shard whose size and time are known nothing is read. See KnownShards.
/// A shard without a sample is a warning.
/// Errors: kNotFound (a shard does not exist), kCorrupt as for_each_tar_member(), for no sample at
/// all, and naming shard and member for two members of one name, a second picture of a sample, a
/// sample without picture or class; kInvalidArgument for a class that is not in [0, classes.count).
PictureIndex index_shards(const std::string& pattern, const PictureClasses& classes,
                          const std::filesystem::path& known = {});

}  // namespace lockstep::inline internal
