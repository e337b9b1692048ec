// What is looked at of PNG and JPEG before OpenCV decodes them, which is the libraries' own matter.

#include <cstdint>

#include "lockstep/ocr/transforms/image_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  lockstep::ocr::image_fault({bytes, size});
  return 0;
}
