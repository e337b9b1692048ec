#include "lockstep/data/pictures/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

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
  names_.add(name);
  labels_.push_back(static_cast<int32_t>(label));
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
  for (int32_t& label : labels_) {
    label = static_cast<int32_t>(labels[static_cast<size_t>(label)]);
  }
}

void PictureIndex::keep(int64_t size) {
  if (size >= this->size()) return;
  const auto left = static_cast<size_t>(size);
  names_.keep(size);
  labels_.resize(std::min(labels_.size(), left));
  entries_.resize(std::min(entries_.size(), left));
  shrink();
}

void PictureIndex::shrink() {
  entries_.shrink_to_fit();
  names_.shrink();
  labels_.shrink_to_fit();
  folders_.shrink_to_fit();
}

void PictureIndex::limit_memory(const std::filesystem::path& folder) {
  const auto most = kMostIndexBytes * static_cast<size_t>(size());
  if (size() < kManyNames || memory_bytes() <= most) return;
  std::error_code ignored;
  const auto temporary = std::filesystem::temp_directory_path(ignored);  // empty: there is none
  if (names_.move_to(folder) || (!temporary.empty() && names_.move_to(temporary))) {
    return_freed_memory();
  }
}

size_t PictureIndex::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + names_.memory_bytes() +
         labels_.capacity() * sizeof(int32_t) + folders_.capacity() * sizeof(Folder);
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
  std::string block;
  for_each_name([&](int64_t i, std::string_view name) {
    const auto own_label = static_cast<int32_t>(label(i));
    block.append(reinterpret_cast<const char*>(&own_label), sizeof(own_label));
    (block += name) += '\0';
    if (block.size() < kHashedBytes) return;
    hash.update(block.data(), block.size());
    block.clear();
  });
  hash.update(block.data(), block.size());
  return first_64_bits(hash.hex());
}

void PictureIndex::for_each_name(
    const std::function<void(int64_t index, std::string_view name)>& found) const {
  if (text_ == nullptr) return names_.for_each(found);
  NameWindow window(*text_);
  std::string name;
  size_t folder = 0;  // bytes of its path, which `name` begins with
  auto next = folders_.begin();
  for (int64_t i = 0; i < size(); ++i) {
    if (next != folders_.end() && next->first == i) {
      name = path_of(*next++);
      folder = name.size();
    }
    const Entry& entry = entries_[static_cast<size_t>(i)];
    name.resize(folder);
    name += window.at(entry.begin, entry.bytes);
    found(i, name);
  }
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
  if (text_ == nullptr) return names_.at(index);
  const Entry& entry = entries_[static_cast<size_t>(index)];
  std::string name = path_of(part_with(folders_, index));
  const size_t folder = name.size();
  name.resize(folder + entry.bytes);
  text_->read(entry.begin, name.data() + folder, entry.bytes);
  return name;
}

}  // namespace lockstep::inline internal
