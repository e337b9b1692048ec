#include "lockstep/checkpoint/mindspore_file.h"

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/mindspore_format.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/checkpoint/weight_names.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

std::vector<uint64_t> shape_of(const at::Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  return {sizes.begin(), sizes.end()};
}

void write_slices(int fd, const std::string& name, const at::Tensor& tensor,
                  const std::string& file) {
  const at::Tensor host = tensor.detach().cpu().contiguous();
  const StoredType type = stored_type(name, host);
  const auto* bytes = static_cast<const char*>(host.data_ptr());
  uint64_t left = host.nbytes();
  do {
    const uint64_t slice = std::min(left, kMindSporeSlice);
    const std::string start = mindspore_message_start(name, type, shape_of(host), slice);
    write_all(fd, start.data(), start.size(), file);
    write_all(fd, bytes, slice, file);
    bytes += slice;
    left -= slice;
  } while (left > 0);
}

}  // namespace

void save_ckpt(const std::filesystem::path& path, const TensorMap& tensors) {
  std::vector<std::string> own;
  for (const auto& [name, tensor] : tensors) {
    (void)mindspore_message_start(name, stored_type(name, tensor), {}, 0);  // refuses wrong types
    own.push_back(name);
  }
  const std::vector<std::string> names = mindspore_names(own);
  write_file_atomically(path, [&](int fd) {
    for (size_t i = 0; i < own.size(); ++i) {
      if (!names[i].empty()) write_slices(fd, names[i], tensors.at(own[i]), path.string());
    }
  });
}

void save_ckpt(const std::filesystem::path& path, const torch::nn::Module& module) {
  save_ckpt(path, module_tensors(module));
}

}  // namespace lockstep::inline internal
