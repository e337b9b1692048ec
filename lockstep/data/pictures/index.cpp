#include "lockstep/data/pictures/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lockstep/base/hash.h"
#include "lockstep/base/heap.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/tar.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// That of `parts` in which the picture is: the last that does not begin behind it.
template <typename Part>
const Part& part_with(const std::vector<Part>& parts, int64_t index) {
  const auto next =
      std::upper_bound(parts.begin(), parts.end(), index,
                       [](int64_t picture, const Part& part) { return picture < part.first; });
  return *std::prev(next);
}

}  // namespace

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
  const int64_t number = as_number<int64_t>(text).value_or(-1);
  return number >= 0 && number < classes_.count ? number : -1;
}

std::string ClassNumbers::no_class(const std::string& name) const {
  if (classes_.names.empty()) {
    return fmt::format("has no class '{}'; allowed: 0 to {}", name, classes_.count - 1);
  }
  return fmt::format("has no class '{}'{}", name, did_you_mean(name, classes_.names));
}

void PictureIndex::add(std::string_view name, int64_t label) {
  entries_.push_back(
      {names_.size(), static_cast<uint32_t>(name.size()), static_cast<int32_t>(label)});
  names_ += name;
}

void PictureIndex::begin_folder(const std::shared_ptr<const NameText>& names, uint64_t begin,
                                size_t bytes) {
  text_ = names;
  folders_.push_back({size(), begin, bytes});
}

void PictureIndex::begin_shard(std::string_view name, const ShardState& state) {
  shards_.push_back({size(), std::string(name), state});
}

void PictureIndex::add_at(uint64_t begin, size_t bytes, int64_t label) {
  entries_.push_back({begin, static_cast<uint32_t>(bytes), static_cast<int32_t>(label)});
}

void PictureIndex::classify(PictureClasses classes, const std::vector<int64_t>& labels) {
  classes_ = std::move(classes);
  for (Entry& entry : entries_) {
    entry.label = static_cast<int32_t>(labels[static_cast<size_t>(entry.label)]);
  }
}

void PictureIndex::keep(int64_t size) {
  if (size >= this->size()) return;
  if (!names_.empty()) names_.resize(entries_[static_cast<size_t>(size)].begin);
  entries_.resize(static_cast<size_t>(size));
  shrink();
}

void PictureIndex::shrink() {
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
  folders_.shrink_to_fit();
}

void PictureIndex::move_names(const std::filesystem::path& folder) {
  if (names_.empty()) return;
  const auto text = NameText::put(folder, names_);
  if (text == nullptr) return;
  text_ = text;
  folders_.assign(1, Folder());
  std::string().swap(names_);  // an assignment would keep its memory
  return_freed_memory();
}

size_t PictureIndex::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + names_.capacity() +
         folders_.capacity() * sizeof(Folder) + (text_ == nullptr ? 0 : text_->memory_bytes());
}

uint64_t PictureIndex::digest() const {
  if (shards_.empty()) return digest_of_files();
  Hash hash;
  hash.update(entries_.data(), entries_.size() * sizeof(Entry));
  for (const auto& [first, name, state] : shards_) {  // copies may lie in different folders
    const std::string own =
        fmt::format("{} {}", first, std::filesystem::path(name).filename().string());
    hash.update(own.data(), own.size());
  }
  return first_64_bits(hash.hex());
}

/// Names count as they are, wherever they are held: one host may keep them in a file, another not.
uint64_t PictureIndex::digest_of_files() const {
  constexpr size_t kHashedBytes = size_t{64} << 10;
  Hash hash;
  std::string block, folder;
  std::optional<NameWindow> window;
  if (text_ != nullptr) window.emplace(*text_);
  auto next = folders_.begin();
  for (int64_t i = 0; i < size(); ++i) {
    if (next != folders_.end() && next->first == i) folder = path_of(*next++);
    const Entry& entry = entries_[static_cast<size_t>(i)];
    block.append(reinterpret_cast<const char*>(&entry.label), sizeof(entry.label));
    block += folder;
    block += window ? window->at(entry.begin, entry.bytes)
                    : std::string_view(names_).substr(entry.begin, entry.bytes);
    block += '\0';
    if (block.size() < kHashedBytes) continue;
    hash.update(block.data(), block.size());
    block.clear();
  }
  hash.update(block.data(), block.size());
  return first_64_bits(hash.hex());
}

std::optional<FilePart> PictureIndex::part(int64_t index) const {
  if (shards_.empty()) return std::nullopt;
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return FilePart{entry.begin, entry.bytes, part_with(shards_, index).state};
}

std::vector<int64_t> PictureIndex::shard_firsts() const {
  std::vector<int64_t> firsts;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const int64_t end = i + 1 < shards_.size() ? std::min(shards_[i + 1].first, size()) : size();
    if (shards_[i].first < end) firsts.push_back(shards_[i].first);
  }
  return firsts;
}

std::string PictureIndex::where(int64_t index) const {
  const auto member = part(index);
  std::string file = path(index).string();
  if (!member) return file;
  try {
    const ShardFile shard(file);
    const std::string name = tar_name_before(shard.tar(), member->begin);
    if (!name.empty()) return fmt::format("{}: {}", file, name);
  } catch (const Error&) {  // it has gone, which the reader says
  }
  return fmt::format("{}: byte {}", file, member->begin);
}

std::string PictureIndex::path_of(const Folder& folder) const {
  std::string path(folder.bytes, '/');
  text_->read(folder.begin, path.data(), path.size());
  return path.empty() ? path : path + "/";
}

std::string PictureIndex::name(int64_t index) const {
  if (!shards_.empty()) return part_with(shards_, index).name;
  const Entry& entry = entries_[static_cast<size_t>(index)];
  if (text_ == nullptr) return names_.substr(entry.begin, entry.bytes);
  std::string name = path_of(part_with(folders_, index));
  const size_t folder = name.size();
  name.resize(folder + entry.bytes);
  text_->read(entry.begin, name.data() + folder, entry.bytes);
  return name;
}

}  // namespace lockstep::inline internal
