#include "lockstep/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
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

/// A file that is written sequentially.
class DigestedFile {
 public:
  DigestedFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  void write(const void* data, size_t size) {
    constexpr size_t kPiece = 1 << 20;  // stays in the cache until it is written
    const auto* bytes = static_cast<const char*>(data);
    for (size_t at = 0; at < size; at += kPiece) {
      const size_t piece = std::min(kPiece, size - at);
      hash_.update(bytes + at, piece);
      write_all(fd_, bytes + at, piece, name_);
    }
    size_ += static_cast<int64_t>(size);
  }
  FileDigest digest() { return {size_, hash_.hex()}; }

 private:
  int fd_;
  std::string name_;
  Hash hash_;
  int64_t size_ = 0;
};

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
}

StoredHeader read_header(const ByteSource& file) {
  const std::string start = file.read(0, std::min<uint64_t>(8, file.size()));
  const uint64_t bytes = 8 + stored_header_bytes(start, file.size(), file.name());
  return parse_stored_header(file.read(0, bytes), file.size(), file.name());
}

}  // namespace

void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata, FileDigest* digest) {
  const StoredHeader header = plan(tensors, metadata);
  const std::string start = encode_stored_header(header);
  write_file_atomically(path, [&](int fd) {
    if (digest == nullptr) {
      write_all(fd, start.data(), start.size(), path.string());
      for (const StoredTensor& entry : header.tensors) {
        const at::Tensor host = on_host(tensors.at(entry.name));
        write_all(fd, host.data_ptr(), host.nbytes(), path.string());
      }
      return;
    }
    DigestedFile file(fd, path.string());
    file.write(start.data(), start.size());
    for (const StoredTensor& entry : header.tensors) {
      const at::Tensor host = on_host(tensors.at(entry.name));
      file.write(host.data_ptr(), host.nbytes());
    }
    *digest = file.digest();
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
