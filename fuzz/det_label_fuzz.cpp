// Label files of detection: any bytes are refused with kCorrupt or give regions that may be used.

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/ocr/data/label_file_dataset.h"
#include "lockstep/ocr/data/line_file.h"
#include "lockstep/ocr/data/regions.h"

namespace {

using namespace lockstep;

void use(std::string_view label) {
  auto regions = ocr::parse_regions(label);
  std::vector<std::string> remarks;
  ocr::ignore_unusable(regions, remarks);
  for (const auto& region : regions) {
    if (!region.ignored && region.polygon.size() < 3) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  try {
    use(input);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) std::abort();
  }
  try {
    std::istringstream file{std::string(input)};
    ocr::for_each_line(file, [](const std::string& line, ocr::FileLine) {
      use(ocr::split_label_line(line, "input").label);
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) std::abort();
  }
  return 0;
}
