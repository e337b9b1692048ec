#include "lockstep/ocr/data/synth_text_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "lockstep/error.h"
#include "lockstep/ocr/data/matlab_file.h"
#include "lockstep/ocr/data/regions.h"

namespace lockstep::ocr {

SynthTextDataset::SynthTextDataset(const std::filesystem::path& data_dir,
                                   const std::filesystem::path& label_file)
    : dir_(data_dir), file_(label_file) {
  MatlabFile file(label_file);
  file.read_texts("imnames", [this](size_t, std::vector<std::string> rows) {
    records_.push_back({std::move(rows.front()), {}, {}});
  });
  const auto record = [this](const char* field, size_t cell) -> Record& {
    if (cell < records_.size()) return records_[cell];
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: more {} than the {} imnames", file_, field, records_.size()));
  };
  file.read_numbers("wordBB", [&](size_t cell, const std::vector<float>& numbers) {
    auto& boxes = record("wordBB", cell).boxes;
    boxes.resize(numbers.size() / 8);
    for (size_t i = 0; i < boxes.size(); ++i) {
      std::copy_n(numbers.begin() + static_cast<ptrdiff_t>(8 * i), 8, boxes[i].begin());
    }
  });
  file.read_texts("txt", [&](size_t cell, const std::vector<std::string>& rows) {
    auto& words = record("txt", cell).words;
    for (const auto& row : rows) {
      std::istringstream line(row);
      for (std::string word; line >> word;) words.push_back(word);
    }
  });
  if (records_.empty()) throw Error(ErrorCode::kCorrupt, file_ + ": no images");
}

Sample SynthTextDataset::load(int64_t index) const {
  const auto& record = records_.at(static_cast<size_t>(index));
  Sample sample;
  sample.source = dir_ / record.image;
  sample.label_source = fmt::format("{}:{}", file_, index + 1);
  if (record.boxes.size() != record.words.size()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} ({}): {} boxes for {} words", sample.label_source, sample.source,
                            record.boxes.size(), record.words.size()));
  }
  for (size_t i = 0; i < record.boxes.size(); ++i) {
    const auto& box = record.boxes[i];
    TextRegion region{{}, record.words[i]};
    for (const float at : box) {
      if (std::abs(at) <= kMaxCoordinate) continue;
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{} ({}): a coordinate of {} is beyond any image",
                              sample.label_source, sample.source, at));
    }
    for (size_t k = 0; k < 8; k += 2) region.polygon.emplace_back(box.at(k), box.at(k + 1));
    sample.regions.push_back(std::move(region));
  }
  return sample;
}

}  // namespace lockstep::ocr
