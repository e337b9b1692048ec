#include "lockstep/ocr/data/label_file_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/ocr/data/label_line.h"
#include "lockstep/ocr/data/order.h"

namespace lockstep::ocr {
namespace {

constexpr int64_t kMaxLabelFileBytes = int64_t{4} << 30;

void check_counts(const LabelFiles& files) {
  const size_t count = files.label_files.size();
  const auto fits = [count](size_t given) { return given == 1 || given == count; };
  if (count == 0) throw Error(ErrorCode::kInvalidArgument, "a data set without a label file");
  if (!fits(files.data_dirs.size()) || !fits(files.sample_ratios.size())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} label files, {} data folders, {} sample ratios; allowed: one of "
                            "each for each label file, or one for all",
                            count, files.data_dirs.size(), files.sample_ratios.size()));
  }
  for (const double ratio : files.sample_ratios) {
    if (ratio >= 0 && ratio <= 1) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sample_ratio {}; allowed: 0 to 1", ratio));
  }
}

template <typename T>
const T& one_for(const std::vector<T>& list, size_t index) {
  return list.size() == 1 ? list.front() : list[index];
}

std::vector<uint32_t> chosen_lines(size_t count, double ratio, const LabelFiles& files,
                                   size_t file) {
  std::vector<uint32_t> order;
  if (files.shuffle) {
    order = shuffled(static_cast<uint32_t>(count), files.seed, file);
  } else {
    for (uint32_t i = 0; i < count; ++i) order.push_back(i);
  }
  order.resize(static_cast<size_t>(sampled_count(static_cast<int64_t>(count), ratio)));
  return order;
}

}  // namespace

LabelFileDataset::LabelFileDataset(const LabelFiles& files) {
  check_counts(files);
  for (size_t i = 0; i < files.label_files.size(); ++i) {
    read(files.label_files[i], one_for(files.data_dirs, i), one_for(files.sample_ratios, i), files);
  }
  if (records_.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: no sample (with this sample_ratio)", names_.front()));
  }
}

void LabelFileDataset::read(const std::filesystem::path& label_file,
                            const std::filesystem::path& data_dir, double ratio,
                            const LabelFiles& files) {
  const auto file = static_cast<uint32_t>(names_.size());
  names_.push_back(label_file);
  auto lines = split_label_file(read_file(label_file, kMaxLabelFileBytes), names_.back());
  const size_t first = records_.size();
  for (const uint32_t chosen : chosen_lines(lines.size(), ratio, files, file)) {
    auto& line = lines[chosen];
    Record record{data_dir / line.image, std::move(line.label), file,
                  static_cast<uint32_t>(line.number)};
    std::error_code ignored;
    if (line.fault.empty() && !std::filesystem::exists(record.image, ignored)) {
      line.fault = fmt::format("{}:{}: no image {}", names_.back(), line.number, record.image);
    }
    if (!line.fault.empty()) {
      record.label = std::move(line.fault);
      record.bad = true;
    }
    records_.push_back(std::move(record));
  }
  note_bad_ones(first);
}

void LabelFileDataset::note_bad_ones(size_t first) {
  const auto is_bad = [](const Record& record) { return record.bad; };
  const auto begin = records_.begin() + static_cast<ptrdiff_t>(first);
  const auto bad = std::count_if(begin, records_.end(), is_bad);
  if (bad == 0) return;
  const auto& fault = std::find_if(begin, records_.end(), is_bad)->label;
  if (bad == records_.end() - begin) throw Error(ErrorCode::kCorrupt, fault);
  notes_.push_back(fmt::format("{}: {} of {} samples cannot be used; the first: {}", names_.back(),
                               bad, records_.end() - begin, fault));
}

Sample LabelFileDataset::load(int64_t index) const {
  const auto& record = records_.at(static_cast<size_t>(index));
  if (record.bad) throw Error(ErrorCode::kCorrupt, record.label);
  Sample sample;
  sample.source = record.image;
  sample.label = record.label;
  sample.label_source = fmt::format("{}:{}", names_[record.file], record.line);
  return sample;
}

}  // namespace lockstep::ocr
