#include "lockstep/ocr/data/label_file_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/ocr/data/order.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

constexpr size_t kImagesLookedFor = 1000;  // per file: a second on a slow file server

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

/// The used part of `lines`, in the order of its samples.
template <typename T>
std::vector<T> chosen(std::vector<T> lines, double ratio, const LabelFiles& files, size_t file) {
  const auto count = static_cast<size_t>(sampled_count(static_cast<int64_t>(lines.size()), ratio));
  if (!files.shuffle) {
    lines.resize(count);
    return lines;
  }
  const auto order = shuffled(static_cast<uint32_t>(lines.size()), files.seed, file);
  std::vector<T> drawn;
  for (size_t i = 0; i < count; ++i) drawn.push_back(lines[order[i]]);
  return drawn;
}

/// The message of the error that `body` throws for a bad sample; empty for none.
template <typename Body>
std::string fault_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    return error.what();
  }
  return {};
}

constexpr size_t kMaxLineBytes = 16 << 20;  // far above ten thousand regions

}  // namespace

LabelFileDataset::LabelFileDataset(const LabelFiles& files) {
  check_counts(files);
  for (size_t i = 0; i < files.label_files.size(); ++i) {
    read(files.label_files[i], one_for(files.data_dirs, i), one_for(files.sample_ratios, i), files);
  }
  if (records_.empty()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: no sample (with this sample_ratio)",
                                                         sources_.front().lines.name()));
  }
}

void LabelFileDataset::read(const std::filesystem::path& label_file,
                            const std::filesystem::path& data_dir, double ratio,
                            const LabelFiles& files) {
  const size_t file = sources_.size();
  sources_.push_back({LineFile(label_file), data_dir});
  std::vector<Record> lines;
  size_t bad = 0;
  std::string fault;
  const std::string& name = sources_.back().lines.name();
  sources_.back().lines.scan([&](const std::string& line, FileLine place) {
    lines.push_back({place, static_cast<uint32_t>(file)});
    const std::string found =
        fault_of([&] { split_label_line(line, fmt::format("{}:{}", name, place.number)); });
    if (!found.empty() && ++bad == 1) fault = found;
  });
  if (bad > 0) note_bad_ones("lines", bad, lines.size(), fault);
  lines = chosen(std::move(lines), ratio, files, file);
  const size_t first = records_.size();
  records_.insert(records_.end(), lines.begin(), lines.end());
  look_for_images(first);
}

void LabelFileDataset::look_for_images(size_t first) {
  const size_t count = records_.size() - first;
  const size_t looked_for = std::min(count, kImagesLookedFor);
  size_t readable = 0;
  size_t missing = 0;
  std::string fault;
  for (size_t i = 0; i < looked_for; ++i) {
    const Record& record = records_[first + i * count / looked_for];
    const std::string line = sources_[record.file].lines.read(record.place);
    Sample sample;
    if (!fault_of([&] { sample = parse(record, line); }).empty()) continue;
    ++readable;
    const std::string found = fault_of([&] { require_image(record, sample); });
    if (!found.empty() && ++missing == 1) fault = found;
  }
  if (missing > 0) note_bad_ones("images looked for", missing, readable, fault);
}

void LabelFileDataset::note_bad_ones(const char* of, size_t bad, size_t all,
                                     const std::string& fault) {
  if (bad == all) throw Error(ErrorCode::kCorrupt, fault);
  notes_.push_back(fmt::format("{}: {} of {} {} cannot be used; the first: {}",
                               sources_.back().lines.name(), bad, all, of, fault));
}

Sample LabelFileDataset::parse(const Record& record, std::string_view line) const {
  const Source& source = sources_[record.file];
  Sample sample;
  sample.label_source = fmt::format("{}:{}", source.lines.name(), record.place.number);
  auto parts = split_label_line(line, sample.label_source);
  sample.source = source.data_dir / parts.image;
  sample.label = std::move(parts.label);
  return sample;
}

void LabelFileDataset::require_image(const Record& record, const Sample& sample) const {
  std::error_code ignored;
  if (std::filesystem::exists(sample.source, ignored)) return;
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}:{}: no image {}", sources_[record.file].lines.name(),
                          record.place.number, sample.source));
}

Sample LabelFileDataset::load(int64_t index) const {
  const auto& record = records_.at(static_cast<size_t>(index));
  auto sample = parse(record, sources_[record.file].lines.read(record.place));
  require_image(record, sample);
  return sample;
}

LabelLine split_label_line(std::string_view line, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kCorrupt, where + ": " + why);
  };
  if (line.size() > kMaxLineBytes) {
    refuse(fmt::format("a line of {} bytes; allowed: {}", line.size(), kMaxLineBytes));
  }
  if (line.find('\0') != std::string_view::npos) refuse("a zero byte: no text");
  if (!is_utf8(line)) refuse("not UTF-8");
  const auto text = trimmed(line);
  const char separator = text.find('\t') != std::string_view::npos ? '\t' : ' ';
  const auto count = std::count(text.begin(), text.end(), separator);
  if (count == 0 && line.find('\t') != std::string_view::npos) {
    refuse("nothing on one side of the tab; allowed: IMAGE<TAB>LABEL");
  }
  if (count != 1) {
    refuse(
        fmt::format("{} between image and label; allowed: IMAGE<TAB>LABEL, or one blank instead "
                    "of the tab where there is no other",
                    count == 0          ? std::string("neither tab nor blank")
                    : separator == '\t' ? fmt::format("{} tabs", count)
                                        : fmt::format("no tab but {} blanks", count)));
  }
  const size_t at = text.find(separator);
  return {.image = std::string(text.substr(0, at)), .label = std::string(text.substr(at + 1))};
}

}  // namespace lockstep::ocr
