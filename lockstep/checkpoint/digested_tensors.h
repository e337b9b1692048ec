#pragma once
// The files of tensors in a checkpoint (see weights.h), with their digests.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// A file's header, and what is made of it.
struct TensorFileStart {
  StoredHeader header;
  std::vector<at::ScalarType> types;  ///< Of its tensors.
};

/// Adds a file to `files`. Returns its digest, computed while writing. Errors: those of
/// save_tensors().
FileDigest write_digested(NewFiles& files, const std::filesystem::path& path,
                          const TensorMap& tensors, const StoredMetadata& metadata = {});

/// A file of tensors that has the bytes that were saved.
///
/// It is read twice: to check it, through a small buffer, and then into the tensors. The second
/// time it comes from the page cache. Memory for values that are not checked yet would
/// cost more: the kernel clears it page by page.
class CheckedFile {
 public:
  /// Reads it whole. Errors: those of load_tensors(), and kCorrupt for other bytes.
  CheckedFile(const std::filesystem::path& path, const FileDigest& saved);

  std::string name() const { return file_->name(); }
  const StoredMetadata& metadata() const { return start_.header.metadata; }

  /// The file's tensors. Where `own` has one of that name, type and shape, in C order in host
  /// memory, it is that one, which gets its values by fill(). The others have them, and are new.
  TensorMap lay_out(const TensorMap& own);
  /// Errors: kIo, with some of the tensors filled.
  void fill();

 private:
  void read(const StoredTensor& entry, const at::Tensor& tensor) const;

  std::unique_ptr<FileBytes> file_;
  TensorFileStart start_;
  std::vector<std::pair<const StoredTensor*, at::Tensor>> unfilled_;
};

/// Makes the checks of load_module(). Errors: as load_module().
void check_module(const torch::nn::Module& module, const TensorMap& tensors,
                  const std::string& file);

}  // namespace lockstep::inline internal
