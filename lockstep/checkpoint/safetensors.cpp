#include "lockstep/checkpoint/safetensors.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

struct TypePair {
  StoredType stored;
  at::ScalarType tensor;
};

constexpr std::array<TypePair, 11> kTypes = {{
    {StoredType::kBool, at::kBool},
    {StoredType::kU8, at::kByte},
    {StoredType::kI8, at::kChar},
    {StoredType::kI16, at::kShort},
    {StoredType::kF16, at::kHalf},
    {StoredType::kBf16, at::kBFloat16},
    {StoredType::kI32, at::kInt},
    {StoredType::kF32, at::kFloat},
    {StoredType::kC64, at::kComplexFloat},
    {StoredType::kF64, at::kDouble},
    {StoredType::kI64, at::kLong},
}};

StoredType stored_type(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("tensor '{}' is undefined", name));
  }
  for (const TypePair& pair : kTypes) {
    if (pair.tensor == tensor.scalar_type()) return pair.stored;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tensor '{}': dtype {} has no place in a safetensors file", name,
                          at::toString(tensor.scalar_type())));
}

at::ScalarType tensor_type(const StoredTensor& stored, const std::string& file) {
  for (const TypePair& pair : kTypes) {
    if (pair.stored == stored.type) return pair.tensor;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: tensor '{}': libtorch has no dtype for {}", file, stored.name,
                          to_string(stored.type)));
}

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

/// Fills `size` bytes from `offset`; the file was that long when it was opened.
void read_at(int fd, void* data, size_t size, uint64_t offset, const std::string& file) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::pread(fd, next, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error(fmt::format("read {} at byte {}", file, offset));
    if (got == 0) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{}: ends at byte {} while being read", file, offset));
    }
    next += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
}

uint64_t file_size(int fd, const std::string& file) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw io_error("stat " + file);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, file + " is no file of tensors");
  }
  return static_cast<uint64_t>(info.st_size);
}

StoredHeader read_header(int fd, const std::string& file) {
  const uint64_t size = file_size(fd, file);
  std::string start(std::min<uint64_t>(8, size), '\0');
  read_at(fd, start.data(), start.size(), 0, file);
  start.resize(8 + stored_header_bytes(start, size, file));
  read_at(fd, start.data(), start.size(), 0, file);
  return parse_stored_header(start, size, file);
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
  const std::string file = path.string();
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) throw Error(ErrorCode::kNotFound, file + ": no such file");
  if (!fd) throw io_error("open " + file);
  StoredHeader header = read_header(fd.get(), file);
  LoadedTensors loaded;
  loaded.metadata = std::move(header.metadata);
  for (const StoredTensor& entry : header.tensors) {
    const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
    const at::Tensor tensor = at::empty(shape, at::dtype(tensor_type(entry, file)));
    read_at(fd.get(), tensor.data_ptr(), tensor.nbytes(), header.data_begin + entry.begin, file);
    loaded.tensors.emplace(entry.name, tensor);
  }
  return loaded;
}

}  // namespace lockstep
