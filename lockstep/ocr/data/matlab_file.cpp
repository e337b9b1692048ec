#include "lockstep/ocr/data/matlab_file.h"

#include <fmt/format.h>
#include <matio.h>

#include <span>

#include "lockstep/error.h"

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

}  // namespace

struct MatlabFile::Handle {
  mat_t* file = nullptr;
  ~Handle() {
    if (file != nullptr) Mat_Close(file);
  }

  template <typename Use>
  void for_each_cell(const std::string& name, const char* field, Use use) {
    const Variable variable(Mat_VarRead(file, field), Mat_VarFree);
    if (!variable || variable->class_type != MAT_C_CELL) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: no field '{}' of cells", name, field));
    }
    for (size_t i = 0; i < count_elements(*variable); ++i) {
      const matvar_t* cell = Mat_VarGetCell(variable.get(), static_cast<int>(i));
      if (cell == nullptr || !use(i, *cell)) {
        throw Error(
            ErrorCode::kCorrupt,
            fmt::format("{}: {}{{{}}} is of another kind than it must be", name, field, i + 1));
      }
    }
  }
};

MatlabFile::MatlabFile(const std::filesystem::path& path)
    : handle_(std::make_unique<Handle>()), name_(path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorCode::kNotFound, name_ + ": no such file");
  }
  handle_->file = Mat_Open(name_.c_str(), MAT_ACC_RDONLY);
  if (handle_->file == nullptr) throw Error(ErrorCode::kCorrupt, name_ + ": no MATLAB file");
}

MatlabFile::~MatlabFile() = default;

void MatlabFile::read_texts(const char* field, const TakeTexts& take) {
  handle_->for_each_cell(name_, field, [&take](size_t i, const matvar_t& cell) {
    auto rows = rows_of(cell);
    if (rows.empty()) return false;
    take(i, std::move(rows));
    return true;
  });
}

void MatlabFile::read_numbers(const char* field, const TakeNumbers& take) {
  handle_->for_each_cell(name_, field, [&take](size_t i, const matvar_t& cell) {
    auto numbers = numbers_of(cell);
    if (numbers.empty()) return false;
    take(i, std::move(numbers));
    return true;
  });
}

}  // namespace lockstep::ocr
