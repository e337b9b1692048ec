// The reader of CIFAR-10 files: any bytes are either refused with kCorrupt or read without a fault.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "lockstep/data/cifar10.h"
#include "lockstep/data/transforms.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

void use(const Cifar10& data) {
  static const ImageTransform transform({RandomCrop{}, RandomHorizontalFlip{}, Normalize{}},
                                        data.shape(), 1);
  std::vector<float> out(static_cast<size_t>(transform.output().numel()));
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.label(i) >= data.num_classes()) std::abort();
    transform.apply(data.image(i), 0, i, out);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  Cifar10 data;
  try {
    data.append({reinterpret_cast<const char*>(bytes), size}, "input");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt || data.size() != 0) std::abort();
    return 0;
  }
  if (static_cast<size_t>(data.size() * Cifar10::kRecordBytes) != size) std::abort();
  use(data);
  return 0;
}
