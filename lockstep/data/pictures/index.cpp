#include "lockstep/data/pictures/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/tar.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

ClassNumbers::ClassNumbers(const PictureClasses& classes) : classes_(classes) {
  for (size_t i = 0; i < classes.names.size(); ++i) {
    by_name_.emplace(classes.names[i], static_cast<int64_t>(i));
  }
}

int64_t ClassNumbers::of_name(const std::string& name) const {
  if (classes_.names.empty()) return of_number(name);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

int64_t ClassNumbers::of_number(std::string_view text) const {
  int64_t number = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_whole = error == std::errc() && stop == end;
  return is_whole && number >= 0 && number < classes_.count ? number : -1;
}

std::string ClassNumbers::no_class(const std::string& name) const {
  if (classes_.names.empty()) {
    return fmt::format("has no class '{}'; allowed: 0 to {}", name, classes_.count - 1);
  }
  return fmt::format("has no class '{}'{}", name, did_you_mean(name, classes_.names));
}

void PictureIndex::reserve(size_t pictures, size_t name_bytes) {
  entries_.reserve(pictures);
  names_.reserve(name_bytes);
}

void PictureIndex::add(std::string_view name, int64_t label) {
  entries_.push_back(
      {names_.size(), static_cast<uint32_t>(name.size()), static_cast<int32_t>(label)});
  names_ += name;
}

void PictureIndex::begin_shard(std::string_view name, const ShardState& state) {
  shards_.push_back({size(), std::string(name), state});
}

void PictureIndex::add_member(uint64_t begin, uint32_t bytes, int64_t label) {
  entries_.push_back({begin, bytes, static_cast<int32_t>(label)});
}

void PictureIndex::classify(PictureClasses classes, const std::vector<int64_t>& labels) {
  classes_ = std::move(classes);
  for (Entry& entry : entries_) {
    entry.label = static_cast<int32_t>(labels[static_cast<size_t>(entry.label)]);
  }
}

void PictureIndex::keep(int64_t size) {
  if (size >= this->size()) return;
  if (shards_.empty()) names_.resize(entries_[static_cast<size_t>(size)].begin);
  entries_.resize(static_cast<size_t>(size));
  shrink();
}

void PictureIndex::shrink() {
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
}

uint64_t PictureIndex::digest() const {
  Hash hash;
  hash.update(entries_.data(), entries_.size() * sizeof(Entry));
  hash.update(names_.data(), names_.size());
  for (const auto& [first, name, state] : shards_) {  // copies may lie in different folders
    const std::string own =
        fmt::format("{} {}", first, std::filesystem::path(name).filename().string());
    hash.update(own.data(), own.size());
  }
  return first_64_bits(hash.hex());
}

const PictureIndex::Shard& PictureIndex::shard_of(int64_t index) const {
  const auto next =
      std::upper_bound(shards_.begin(), shards_.end(), index,
                       [](int64_t picture, const Shard& shard) { return picture < shard.first; });
  return *std::prev(next);
}

std::optional<FilePart> PictureIndex::part(int64_t index) const {
  if (shards_.empty()) return std::nullopt;
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return FilePart{entry.begin, entry.bytes, shard_of(index).state};
}

std::string PictureIndex::where(int64_t index) const {
  const auto member = part(index);
  const std::string file = path(index).string();
  if (!member) return file;
  try {
    const ShardFile shard(file);
    const std::string name = tar_name_before(shard.tar(), member->begin);
    if (!name.empty()) return fmt::format("{}: {}", file, name);
  } catch (const Error&) {  // it has gone, which the reader says
  }
  return fmt::format("{}: byte {}", file, member->begin);
}

std::string_view PictureIndex::name(int64_t index) const {
  if (!shards_.empty()) return shard_of(index).name;
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return std::string_view(names_).substr(entry.begin, entry.bytes);
}

}  // namespace lockstep::inline internal
