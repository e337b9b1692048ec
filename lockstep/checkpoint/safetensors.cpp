#include "lockstep/checkpoint/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/tensor_types.h"

namespace lockstep {
namespace {

StoredHeader plan(const TensorMap& tensors, const StoredMetadata& metadata) {
  std::vector<StoredTensor> entries;
  for (const auto& [name, tensor] : tensors) {
    StoredTensor& entry = entries.emplace_back();
    entry.name = name;
    entry.type = stored_type(name, tensor);
    for (const int64_t extent : tensor.sizes()) {
      entry.shape.push_back(static_cast<uint64_t>(extent));
    }
  }
  return plan_stored_file(std::move(entries), metadata);
}

void write_tensor(int fd, const at::Tensor& tensor, const std::string& what) {
  const at::Tensor host = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
  write_all(fd, host.data_ptr(), host.nbytes(), what);
}

StoredHeader read_header(const ByteSource& file) {
  const std::string start = file.read(0, std::min<uint64_t>(8, file.size()));
  const uint64_t bytes = 8 + stored_header_bytes(start, file.size(), file.name());
  return parse_stored_header(file.read(0, bytes), file.size(), file.name());
}

}  // namespace

void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata) {
  const StoredHeader header = plan(tensors, metadata);
  write_file_atomically(path, [&](int fd) {
    const std::string start = encode_stored_header(header);
    write_all(fd, start.data(), start.size(), path.string());
    for (const StoredTensor& entry : header.tensors) {
      write_tensor(fd, tensors.at(entry.name), path.string());
    }
  });
}

LoadedTensors load_tensors(const std::filesystem::path& path) {
  const auto file = FileBytes::open(path);
  StoredHeader header = read_header(*file);
  LoadedTensors loaded;
  loaded.metadata = std::move(header.metadata);
  for (const StoredTensor& entry : header.tensors) {
    const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
    const auto type = tensor_type(entry.type, entry.name, file->name());
    const at::Tensor tensor = at::empty(shape, at::dtype(type));
    file->read(header.data_begin + entry.begin, tensor.data_ptr(), tensor.nbytes());
    loaded.tensors.emplace(entry.name, tensor);
  }
  return loaded;
}

}  // namespace lockstep
