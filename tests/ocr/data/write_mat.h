#pragma once
// MATLAB files like SynthText's, by libmatio.

#include <gtest/gtest.h>
#include <matio.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {

inline matvar_t* cells(const char* name, size_t count) {
  std::array<size_t, 2> sizes = {1, count};
  return Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, sizes.data(), nullptr, 0);
}

/// A character matrix of equally long rows.
inline matvar_t* text(const std::vector<std::string>& rows) {
  std::string columns;
  for (size_t x = 0; x < rows[0].size(); ++x) {
    for (const auto& row : rows) columns += row[x];
  }
  std::array<size_t, 2> sizes = {rows.size(), rows[0].size()};
  return Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UINT8, 2, sizes.data(), columns.data(), 0);
}

/// 2 x 4 x n: the corners of n boxes, x and y in turn.
inline matvar_t* boxes(std::vector<float> numbers) {
  std::array<size_t, 3> sizes = {2, 4, numbers.size() / 8};
  return Mat_VarCreate(nullptr, MAT_C_SINGLE, MAT_T_SINGLE, sizes[2] == 1 ? 2 : 3, sizes.data(),
                       numbers.data(), 0);
}

/// A cell array: its name, and the content of each cell.
using MatField = std::pair<const char*, std::vector<matvar_t*>>;

inline void write_mat(const std::filesystem::path& path, const std::vector<MatField>& fields) {
  mat_t* file = Mat_CreateVer(path.c_str(), nullptr, MAT_FT_MAT5);
  for (const auto& [name, values] : fields) {
    matvar_t* variable = cells(name, values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      Mat_VarSetCell(variable, static_cast<int>(i), values[i]);
    }
    EXPECT_EQ(Mat_VarWrite(file, variable, MAT_COMPRESSION_NONE), 0);
    Mat_VarFree(variable);
  }
  Mat_Close(file);
}

}  // namespace lockstep::testing
