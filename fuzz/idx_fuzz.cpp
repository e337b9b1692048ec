// MNIST's files, compressed or not: any bytes are either refused with kCorrupt or read without a
// fault. The first byte of the input says how long the file of images is.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "lockstep/data/mnist.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const size_t cut = std::min(rest.size(), size_t{bytes[0]} * 16);
  const std::string name = "input";
  Mnist data;
  try {
    data.append({rest.substr(0, cut), name}, {rest.substr(cut), name});
    for (int64_t i = 0; i < data.size(); ++i) {
      if (data.label(i) >= data.num_classes()) std::abort();
    }
    if (data.image(data.size() - 1).size() != 784) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt || data.size() != 0) std::abort();
  }
  try {
    gunzip(rest, name, 1 << 16);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) std::abort();
  }
  return 0;
}
