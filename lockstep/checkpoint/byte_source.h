#pragma once
// Random access to bytes of a file, or of memory in tests.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

class ByteSource {
 public:
  ByteSource(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& name() const { return name_; }  ///< For messages.
  uint64_t size() const { return size_; }

  /// Reads `count` bytes at `offset`. Errors: kCorrupt if they lie outside, kIo.
  void read(uint64_t offset, void* into, uint64_t count) const;
  std::string read(uint64_t offset, uint64_t count) const;
  /// Gives `use` the same bytes one after another, in pieces that stay in the processor's cache.
  void read_pieces(uint64_t offset, uint64_t count,
                   const std::function<void(std::string_view)>& use) const;

 private:
  virtual void fetch(uint64_t offset, void* into, uint64_t count) const = 0;

  std::string name_;
  uint64_t size_;
};

class FileBytes final : public ByteSource {
 public:
  /// `name`: for messages, if it is not the path. Errors: kNotFound, kIo, kInvalidArgument if it is
  /// not a regular file.
  static std::unique_ptr<FileBytes> open(const std::filesystem::path& path, std::string name = "");

 private:
  FileBytes(std::string name, uint64_t size, UniqueFd fd)
      : ByteSource(std::move(name), size), fd_(std::move(fd)) {}
  void fetch(uint64_t offset, void* into, uint64_t count) const override;

  UniqueFd fd_;
};

/// Reads bytes that outlive it.
class MemoryBytes final : public ByteSource {
 public:
  MemoryBytes(std::string name, std::string_view bytes)
      : ByteSource(std::move(name), bytes.size()), bytes_(bytes) {}

 private:
  void fetch(uint64_t offset, void* into, uint64_t count) const override;

  std::string_view bytes_;
};

}  // namespace lockstep::inline internal
