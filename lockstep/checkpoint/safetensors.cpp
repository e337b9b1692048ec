#include "lockstep/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/base/new_file.h"
#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/digested_tensors.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr size_t kPiece = 1 << 20;  // stays in the cache until it is written, or digested

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

/// A file that is written sequentially. The disk is busy meanwhile.
class SequentialFile {
 public:
  SequentialFile(int fd, std::string name, FileDigester* digester)
      : fd_(fd), name_(std::move(name)), digester_(digester) {}

  void write(const void* data, size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    for (size_t at = 0; at < size; at += kPiece) {
      const size_t piece = std::min(kPiece, size - at);
      if (digester_ != nullptr) digester_->update(bytes + at, piece);
      write_all(fd_, bytes + at, piece, name_);
      written_ += piece;
      if (written_ - given_ >= kGiven) give_to_disk();
    }
  }

 private:
  static constexpr size_t kGiven = 8 << 20;

  void give_to_disk() {
    begin_writeback(fd_, given_, written_);
    given_ = written_;
  }

  int fd_;
  std::string name_;
  FileDigester* digester_;
  size_t written_ = 0;
  size_t given_ = 0;  // of these the disk knows
};

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
}

void write_tensors(int fd, const std::string& name, const TensorMap& tensors,
                   const StoredHeader& header, FileDigester* digester) {
  const uint64_t end = header.tensors.empty() ? 0 : header.tensors.back().end;
  reserve(fd, header.data_begin + end, name);
  SequentialFile file(fd, name, digester);
  const std::string start = encode_stored_header(header);
  file.write(start.data(), start.size());
  for (const StoredTensor& entry : header.tensors) {
    const at::Tensor host = on_host(tensors.at(entry.name));
    file.write(host.data_ptr(), host.nbytes());
  }
}

/// A file's header, and what is made of it.
struct FileStart {
  std::string bytes;
  StoredHeader header;
  std::vector<at::ScalarType> types;  ///< Of its tensors.
};

FileStart read_start(const ByteSource& file) {
  const std::string first = file.read(0, std::min<uint64_t>(8, file.size()));
  FileStart start;
  start.bytes = file.read(0, 8 + stored_header_bytes(first, file.size(), file.name()));
  start.header = parse_stored_header(start.bytes, file.size(), file.name());
  for (const StoredTensor& entry : start.header.tensors) {
    start.types.push_back(tensor_type(entry.type, entry.name, file.name()));
  }
  return start;
}

/// The same of a file whose digest is known: a damaged header is reported as damage.
FileStart read_saved_start(const ByteSource& file, const FileDigest& saved) {
  check_bytes(file.name(), static_cast<int64_t>(file.size()), saved);
  try {
    return read_start(file);
  } catch (const Error&) {
    check_digest(file.name(), digest_file(file.name(), saved.kind), saved);
    throw;
  }
}

/// Fills `tensor` from the file, piece by piece if they are digested.
void read_tensor(const ByteSource& file, uint64_t offset, const at::Tensor& tensor,
                 FileDigester* digester) {
  auto* next = static_cast<char*>(tensor.data_ptr());
  if (digester == nullptr) return file.read(offset, next, tensor.nbytes());
  for (size_t left = tensor.nbytes(); left > 0;) {
    const size_t piece = std::min(kPiece, left);
    file.read(offset, next, piece);
    digester->update(next, piece);
    offset += piece;
    next += piece;
    left -= piece;
  }
}

LoadedTensors read_tensors(const ByteSource& file, FileStart start, FileDigester* digester) {
  LoadedTensors loaded;
  loaded.metadata = std::move(start.header.metadata);
  for (size_t i = 0; i < start.types.size(); ++i) {
    const StoredTensor& entry = start.header.tensors[i];
    const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
    const at::Tensor tensor = at::empty(shape, at::dtype(start.types[i]));
    read_tensor(file, start.header.data_begin + entry.begin, tensor, digester);
    loaded.tensors.emplace(entry.name, tensor);
  }
  return loaded;
}

}  // namespace

void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata) {
  const StoredHeader header = plan(tensors, metadata);
  write_file_atomically(
      path, [&](int fd) { write_tensors(fd, path.string(), tensors, header, nullptr); });
}

FileDigest write_digested(NewFiles& files, const std::filesystem::path& path,
                          const TensorMap& tensors, const StoredMetadata& metadata) {
  const StoredHeader header = plan(tensors, metadata);
  FileDigester digester;
  files.write(path, [&](int fd) { write_tensors(fd, path.string(), tensors, header, &digester); });
  return digester.digest();
}

LoadedTensors load_tensors(const std::filesystem::path& path) {
  const auto file = FileBytes::open(path);
  return read_tensors(*file, read_start(*file), nullptr);
}

LoadedTensors load_digested(const std::filesystem::path& path, const FileDigest& saved) {
  const auto file = FileBytes::open(path);
  FileStart start = read_saved_start(*file, saved);
  FileDigester digester(saved.kind);
  digester.update(start.bytes.data(), start.bytes.size());
  LoadedTensors loaded = read_tensors(*file, std::move(start), &digester);
  check_digest(file->name(), digester.digest(), saved);
  return loaded;
}

}  // namespace lockstep
