#include "lockstep/weights.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/digested_tensors.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/checkpoint/tensor_types.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kPiece = 1 << 18;  // stays in the cache until it is digested and written

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

TensorFileStart read_start(const ByteSource& file) {
  const std::string first = file.read(0, std::min<uint64_t>(8, file.size()));
  TensorFileStart start;
  const uint64_t length = 8 + stored_header_bytes(first, file.size(), file.name());
  start.header = parse_stored_header(file.read(0, length), file.size(), file.name());
  for (const StoredTensor& entry : start.header.tensors) {
    start.types.push_back(tensor_type(entry.type, entry.name, file.name()));
  }
  return start;
}

at::Tensor make_tensor(const StoredTensor& entry, at::ScalarType type) {
  const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
  return at::empty(shape, at::dtype(type));
}

bool is_for(const at::Tensor& own, const StoredTensor& entry, at::ScalarType type) {
  const at::IntArrayRef sizes = own.sizes();
  return own.device().is_cpu() && own.is_contiguous() && own.scalar_type() == type &&
         std::equal(sizes.begin(), sizes.end(), entry.shape.begin(), entry.shape.end(),
                    [](int64_t a, uint64_t b) { return static_cast<uint64_t>(a) == b; });
}

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata) {
  const StoredHeader header = plan(tensors, metadata);
  write_file_atomically(
      path, [&](int fd) { write_tensors(fd, path.string(), tensors, header, nullptr); });
}

}  // namespace lockstep

namespace lockstep::inline internal {

FileDigest write_digested(NewFiles& files, const std::filesystem::path& path,
                          const TensorMap& tensors, const StoredMetadata& metadata) {
  const StoredHeader header = plan(tensors, metadata);
  FileDigester digester;
  files.write(path, [&](int fd) { write_tensors(fd, path.string(), tensors, header, &digester); });
  return digester.digest();
}

}  // namespace lockstep::inline internal

namespace lockstep {

LoadedTensors load_tensors(const std::filesystem::path& path) {
  const auto file = FileBytes::open(path);
  TensorFileStart start = read_start(*file);
  LoadedTensors loaded;
  loaded.metadata = std::move(start.header.metadata);
  for (size_t i = 0; i < start.types.size(); ++i) {
    const StoredTensor& entry = start.header.tensors[i];
    const at::Tensor tensor = make_tensor(entry, start.types[i]);
    file->read(start.header.data_begin + entry.begin, tensor.data_ptr(), tensor.nbytes());
    loaded.tensors.emplace(entry.name, tensor);
  }
  return loaded;
}

}  // namespace lockstep

namespace lockstep::inline internal {

CheckedFile::CheckedFile(const std::filesystem::path& path, const FileDigest& saved)
    : file_(FileBytes::open(path)) {
  check_saved(*file_, saved);
  start_ = read_start(*file_);
}

void CheckedFile::read(const StoredTensor& entry, const at::Tensor& tensor) const {
  file_->read(start_.header.data_begin + entry.begin, tensor.data_ptr(), tensor.nbytes());
}

TensorMap CheckedFile::lay_out(const TensorMap& own) {
  TensorMap tensors;
  for (size_t i = 0; i < start_.types.size(); ++i) {
    const StoredTensor& entry = start_.header.tensors[i];
    const auto found = own.find(entry.name);
    if (found != own.end() && is_for(found->second, entry, start_.types[i])) {
      unfilled_.emplace_back(&entry, found->second);
      tensors.emplace(entry.name, found->second);
    } else {
      const at::Tensor tensor = make_tensor(entry, start_.types[i]);
      read(entry, tensor);
      tensors.emplace(entry.name, tensor);
    }
  }
  return tensors;
}

void CheckedFile::fill() {
  for (const auto& [entry, tensor] : unfilled_) {
    read(*entry, tensor);
    tensor.unsafeGetTensorImpl()->bump_version();  // autograd is told, as by copy_()
  }
  unfilled_.clear();
}

}  // namespace lockstep::inline internal
