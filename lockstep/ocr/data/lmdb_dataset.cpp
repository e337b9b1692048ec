#include "lockstep/ocr/data/lmdb_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "lockstep/base/log.h"
#include "lockstep/base/number.h"
#include "lockstep/error.h"
#include "lockstep/ocr/data/order.h"
#include "lockstep/ocr/text/dictionary.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

constexpr int kCheckedMinSide = 7;       // check_rec_image: 6 pixels a side are too few
constexpr int64_t kMinRecordBytes = 32;  // two keys of 15 bytes or more
constexpr int64_t kMaxRecords = 999'999'999;

std::string key_of(const char* what, int64_t number) {
  return fmt::format("{}-{:09d}", what, number);
}

int64_t count_records(const LmdbFile& file) {
  const auto text = file.get("num-samples");
  const int64_t count = text ? as_number<int64_t>(*text).value_or(-1) : -1;
  const int64_t most = std::min(kMaxRecords, file.num_bytes() / kMinRecordBytes);
  if (count < 0 || count > most) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: key num-samples is {}; allowed: 0 to {} in a file of this size",
                            file.name(), text ? "'" + text->substr(0, 20) + "'" : "missing", most));
  }
  return count;
}

/// The last component of the path, also of "training/" and ".".
std::string name_of(const std::filesystem::path& dir) {
  const auto with_slash = (std::filesystem::absolute(dir) / "").lexically_normal();
  return with_slash.parent_path().filename().string();
}

/// Sub-folders sorted by name. Links are not followed, but a folder with one is no leaf.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> folders;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.is_directory()) folders.push_back(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorCode::kIo, error.what());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Applies the options that filter labels.
class LabelFilter {
 public:
  explicit LabelFilter(const LmdbOptions& options) : options_(options) {
    if (!options.filter_zero_text_image) return;
    const Dictionary dictionary({.character_dict_path = options.character_dict_path});
    for (int32_t i = 0; i < dictionary.num_classes(); ++i) known_.insert(dictionary.character(i));
    fold_ = options.character_dict_path.empty();  // upper case counts, too
  }

  bool keeps(const std::string& text) const {
    if (options_.filter_max_len) {
      const int64_t length =
          options_.extra_count_if_repeat ? ctc_length(text) : count_characters(text);
      if (length > options_.max_text_len) return false;
    }
    if (!options_.filter_zero_text_image) return true;
    const std::string folded = fold_ ? to_lower(text) : text;
    const auto all = characters(folded);
    return std::any_of(all.begin(), all.end(),
                       [this](auto one) { return known_.contains(std::string(one)); });
  }

 private:
  LmdbOptions options_;
  std::unordered_set<std::string> known_;
  bool fold_ = false;
};

}  // namespace

LmdbDataset::LmdbDataset(const LmdbSets& sets)
    : standardize_(sets.options.label_standandize),
      min_side_(sets.options.check_rec_image ? kCheckedMinSide : 1) {
  if (!(sets.sample_ratio >= 0 && sets.sample_ratio <= 1)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sample_ratio {}; allowed: 0 to 1", sets.sample_ratio));
  }
  std::string folders;
  for (const auto& dir : sets.data_dirs) {
    open_below(dir);
    folders += (folders.empty() ? "" : ", ") + dir.string();
  }
  if (environments_.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "no LMDB environment (data.mdb) below " + folders);
  }
  choose(sets);
  if (sets.options.filter_max_len || sets.options.filter_zero_text_image) filter(sets.options);
  if (num_records_ == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "no LMDB record (with this sample_ratio and these filters) below " + folders);
  }
}

void LmdbDataset::open_below(const std::filesystem::path& dir) {
  if (!std::filesystem::is_directory(dir)) {
    throw Error(ErrorCode::kNotFound, dir.string() + ": no such folder");
  }
  const auto folders = folders_in(dir);
  for (const auto& folder : folders) {
    if (!std::filesystem::is_symlink(folder)) open_below(folder);
  }
  if (folders.empty()) open(dir);
}

void LmdbDataset::open(const std::filesystem::path& dir) {
  try {
    LmdbFile file(dir);
    const int64_t count = count_records(file);
    if (num_stored_ + count > std::numeric_limits<uint32_t>::max()) {
      throw Error(ErrorCode::kInvalidArgument, "more than 2^32 LMDB records");
    }
    notes_.front() += fmt::format("\n{:<20}{}", name_of(dir), count);
    environments_.push_back({std::move(file), num_stored_});
    num_stored_ += count;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    log_warn(fmt::format("{}; the folder is passed over", error.what()));
  }
}

void LmdbDataset::choose(const LmdbSets& sets) {
  num_records_ = sampled_count(num_stored_, sets.sample_ratio);
  if (!sets.shuffle) return;
  chosen_ = shuffled(static_cast<uint32_t>(num_stored_), sets.seed, 0);
  chosen_.resize(static_cast<size_t>(num_records_));
}

void LmdbDataset::filter(const LmdbOptions& options) {
  const LabelFilter wanted(options);
  const auto is_kept = [&](uint32_t record) {
    try {
      return wanted.keeps(label(place(record)));
    } catch (const Error&) {
      return true;  // a bad sample, reported when it is loaded
    }
  };
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < num_records_; ++i) {
    const uint32_t record =
        chosen_.empty() ? static_cast<uint32_t>(i) : chosen_[static_cast<size_t>(i)];
    if (is_kept(record)) kept.push_back(record);
  }
  const auto num_left_out = num_records_ - static_cast<int64_t>(kept.size());
  if (num_left_out > 0) {
    notes_.push_back(
        fmt::format("{} of {} LMDB records are left out by their labels (filter_max_len, "
                    "filter_zero_text_image)",
                    num_left_out, num_records_));
  }
  chosen_ = std::move(kept);
  num_records_ = static_cast<int64_t>(chosen_.size());
}

LmdbDataset::Place LmdbDataset::place(int64_t record) const {
  auto next = std::upper_bound(
      environments_.begin(), environments_.end(), record,
      [](int64_t value, const Environment& environment) { return value < environment.begin; });
  const auto& environment = *--next;
  return {environment.file, record - environment.begin + 1};
}

std::string LmdbDataset::label(const Place& place) const {
  const std::string key = key_of("label", place.number);
  auto text = place.file.get(key);
  if (!text || !is_utf8(*text)) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: key {} is {}", place.file.name(), key,
                                                 text ? "not UTF-8" : "missing"));
  }
  return standardize_ ? to_nfkd(*text) : std::move(*text);
}

Sample LmdbDataset::load(int64_t index) const {
  const auto at = place(chosen_.empty() ? index : int64_t{chosen_.at(static_cast<size_t>(index))});
  const std::string key = key_of("image", at.number);
  Sample sample;
  sample.label = label(at);
  sample.source = at.file.name() + ":" + key;
  sample.min_side = min_side_;
  const auto image = at.file.get(key);
  if (!image) throw Error(ErrorCode::kCorrupt, sample.source + ": missing");
  sample.encoded.assign(image->begin(), image->end());
  return sample;
}

}  // namespace lockstep::ocr
