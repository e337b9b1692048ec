// What is looked at of PNG, JPEG and BMP before OpenCV decodes them, which is the libraries' own
// matter.

#include <cstdint>

#include "lockstep/ocr/transforms/image_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  namespace ocr = lockstep::ocr;
  const bool whole = ocr::image_fault({bytes, size}).empty();
  if (whole && ocr::is_png({bytes, size})) ocr::plain_png({bytes, size});
  return 0;
}
