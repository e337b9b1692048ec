#pragma once
// The subset of MATLAB's format for SynthText's label file: cells of texts and of numbers.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ocr {

/// A MATLAB file, read by libmatio. Errors: kNotFound, kCorrupt naming file and field.
class MatlabFile {
 public:
  explicit MatlabFile(const std::filesystem::path& path);
  ~MatlabFile();
  MatlabFile(const MatlabFile&) = delete;
  MatlabFile& operator=(const MatlabFile&) = delete;

  /// Calls `take` with the cell's number and the rows of its text, including trailing blanks.
  using TakeTexts = std::function<void(size_t cell, std::vector<std::string> rows)>;
  void read_texts(const char* field, const TakeTexts& take);

  /// The same with each cell's numbers, the first dimension varying fastest.
  using TakeNumbers = std::function<void(size_t cell, std::vector<float> numbers)>;
  void read_numbers(const char* field, const TakeNumbers& take);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string name_;
};

}  // namespace lockstep::ocr
