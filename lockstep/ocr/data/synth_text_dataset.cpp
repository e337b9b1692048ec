#include "lockstep/ocr/data/synth_text_dataset.h"

#include <fmt/format.h>
#include <matio.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/ocr/data/regions.h"

namespace lockstep::ocr {
namespace {

using Variable = std::unique_ptr<matvar_t, void (*)(matvar_t*)>;

size_t count_elements(const matvar_t& variable) {
  size_t count = 1;
  for (int i = 0; i < variable.rank; ++i) count *= variable.dims[i];
  return count;
}

/// UTF-8 of a UTF-16 unit; the data set has no characters of two units.
void append_unit(uint32_t unit, std::string& text) {
  if (unit < 0x80) {
    text += static_cast<char>(unit);
  } else if (unit < 0x800) {
    text += static_cast<char>(0xC0 | unit >> 6);
    text += static_cast<char>(0x80 | (unit & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | unit >> 12);
    text += static_cast<char>(0x80 | (unit >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (unit & 0x3F));
  }
}

/// Rows of a character matrix, which is stored by columns. Empty for other types.
std::vector<std::string> rows_of(const matvar_t& cell) {
  const size_t count = count_elements(cell);
  if (cell.class_type != MAT_C_CHAR || cell.rank != 2 || cell.data == nullptr || count == 0)
    return {};
  const auto width = static_cast<size_t>(cell.data_size);
  if (width > 2 || cell.nbytes < count * width) return {};
  std::vector<std::string> rows(cell.dims[0]);
  for (size_t i = 0; i < count; ++i) {
    auto& row = rows[i % rows.size()];
    if (width == 2) {
      append_unit(static_cast<const uint16_t*>(cell.data)[i], row);
    } else {
      row += static_cast<const char*>(cell.data)[i];
    }
  }
  return rows;
}

template <typename T>
std::vector<float> to_floats(const matvar_t& cell) {
  const size_t count = count_elements(cell);
  if (cell.data == nullptr || cell.nbytes < count * sizeof(T)) return {};
  const std::span<const T> numbers(static_cast<const T*>(cell.data), count);
  return {numbers.begin(), numbers.end()};
}

std::vector<float> numbers_of(const matvar_t& cell) {
  if (cell.data_type == MAT_T_DOUBLE) return to_floats<double>(cell);
  return cell.data_type == MAT_T_SINGLE ? to_floats<float>(cell) : std::vector<float>();
}

/// The subset of MATLAB's format for SynthText's label file, cells of texts and of numbers, read by
/// libmatio. Errors: kNotFound, kCorrupt naming file and field.
class MatlabFile {
 public:
  explicit MatlabFile(const std::filesystem::path& path) : name_(path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
      throw Error(ErrorCode::kNotFound, name_ + ": no such file");
    }
    file_.reset(Mat_Open(name_.c_str(), MAT_ACC_RDONLY));
    if (!file_) throw Error(ErrorCode::kCorrupt, name_ + ": no MATLAB file");
  }

  /// Calls `take` with the cell's number and the rows of its text, including trailing blanks.
  template <typename Take>
  void read_texts(const char* field, const Take& take) {
    for_each_cell(field, [&take](size_t i, const matvar_t& cell) {
      auto rows = rows_of(cell);
      if (rows.empty()) return false;
      take(i, std::move(rows));
      return true;
    });
  }

  /// The same with each cell's numbers, the first dimension varying fastest.
  template <typename Take>
  void read_numbers(const char* field, const Take& take) {
    for_each_cell(field, [&take](size_t i, const matvar_t& cell) {
      auto numbers = numbers_of(cell);
      if (numbers.empty()) return false;
      take(i, std::move(numbers));
      return true;
    });
  }

 private:
  template <typename Use>
  void for_each_cell(const char* field, const Use& use) {
    const Variable variable(Mat_VarRead(file_.get(), field), Mat_VarFree);
    if (!variable || variable->class_type != MAT_C_CELL) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: no field '{}' of cells", name_, field));
    }
    for (size_t i = 0; i < count_elements(*variable); ++i) {
      const matvar_t* cell = Mat_VarGetCell(variable.get(), static_cast<int>(i));
      if (cell == nullptr || !use(i, *cell)) {
        throw Error(
            ErrorCode::kCorrupt,
            fmt::format("{}: {}{{{}}} is of another kind than it must be", name_, field, i + 1));
      }
    }
  }

  std::string name_;
  std::unique_ptr<mat_t, int (*)(mat_t*)> file_{nullptr, Mat_Close};
};

}  // namespace

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
