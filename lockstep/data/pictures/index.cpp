#include "lockstep/data/pictures/index.h"

#include "lockstep/base/hash.h"

namespace lockstep {

void PictureIndex::reserve(size_t pictures, size_t name_bytes) {
  entries_.reserve(pictures);
  names_.reserve(name_bytes);
}

void PictureIndex::add(std::string_view name, int64_t label) {
  entries_.push_back(
      {names_.size(), static_cast<uint32_t>(name.size()), static_cast<int32_t>(label)});
  names_ += name;
}

void PictureIndex::classify(PictureClasses classes, const std::vector<int64_t>& labels) {
  classes_ = std::move(classes);
  for (Entry& entry : entries_) {
    entry.label = static_cast<int32_t>(labels[static_cast<size_t>(entry.label)]);
  }
}

void PictureIndex::keep(int64_t size) {
  if (size >= this->size()) return;
  names_.resize(entries_[static_cast<size_t>(size)].begin);
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
  return first_64_bits(hash.hex());
}

std::string_view PictureIndex::name(int64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return std::string_view(names_).substr(entry.begin, entry.bytes);
}

}  // namespace lockstep
