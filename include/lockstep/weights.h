#pragma once
// These functions keep named tensors in files and modules. They write safetensors, and read weights
// of any origin (also MindSpore's .ckpt and PyTorch's .pth). The content determines the format, not
// the file's name.
//
// Use:
//   lockstep::save_tensors("net.safetensors", lockstep::module_tensors(*net));
//   const auto file = lockstep::load_tensors("net.safetensors");
//   lockstep::load_module(*net, file.tensors, "net.safetensors");
//   const auto report = lockstep::load_weights("resnet50.pth", *net);
//   for (const auto& name : report.unused) std::printf("left aside: %s\n", name.c_str());
//
// Threads: any, each with a module of its own and, to write, a path of its own. Nothing is
// collective: one rank saves, and each rank loads.
// Cost: one pass over the bytes that are written or read. Weights of a checkpoint are read twice:
// the first pass compares them with the digest in its state.json. A write is synced to disk. A load
// holds the tensors in memory beside the module's.
// Errors: kNotFound, kCorrupt, kInvalidArgument and kIo: see each function.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace lockstep {

// Named tensors in a safetensors file, readable from Python, Rust, JavaScript and others.

using StoredMetadata = std::map<std::string, std::string>;
using TensorMap = std::map<std::string, at::Tensor>;

/// Replaces `path` by a file with these tensors, completely or not at all. Equal tensors and
/// metadata give equal bytes. Tensors may lie on any device, with any strides; they are copied to
/// the host one at a time. Each of several tensors that share memory is written whole.
/// Cost: one pass over the bytes, no second copy of contiguous host tensors.
/// Errors: kInvalidArgument naming tensor and dtype (none: undefined or sparse), kIo (disk full
/// among others). The format has no quantized types, and of the complex types only complex64.
void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata = {});

struct LoadedTensors {
  TensorMap tensors;  ///< On the CPU, each owning its memory.
  StoredMetadata metadata;
};

/// Reads a whole file. The header is checked against the file's size first, so no more memory than
/// that is allocated.
/// Errors: kNotFound, kCorrupt (file, tensor and offset), kInvalidArgument for a dtype that
/// libtorch does not have.
LoadedTensors load_tensors(const std::filesystem::path& path);

// Parameters and buffers of a network as named tensors, under PyTorch's names
// ("layer1.0.bn1.bias").

/// All parameters and buffers; the tensors are the module's own, not copies.
TensorMap module_tensors(const torch::nn::Module& module);

/// Copies values into the module's own tensors. The tensors stay in place, so gradients, optimizers
/// and DDP remain valid. Checks everything before the first copy.
/// Errors, nothing changed: kCorrupt naming `file` and tensor: missing, not of this network, other
/// shape, other dtype. kInvalidArgument naming a tensor of the network that is sparse, or has
/// elements that share memory, as after expand().
void load_module(torch::nn::Module& module, const TensorMap& tensors, const std::string& file);

/// All tensors under the file's own names, on the CPU, each owning its memory. Quantized and sparse
/// ones of a .pth are left out.
/// Errors: kCorrupt naming file and tensor, or if a checkpoint's bytes are not those saved;
/// kNotFound, kInvalidArgument for a dtype that libtorch does not have.
TensorMap read_weights(const std::filesystem::path& path);

struct WeightOptions {
  /// For evaluation and resumption: a missing tensor of the network, or one of another shape, is an
  /// error. Otherwise, to start from other weights, it keeps its values, and a log line names it.
  /// Another line has the number of loaded tensors. Positions of a vision transformer for
  /// pictures of another size are interpolated.
  bool strict = true;
  /// "backbone.": the file holds only that part of the network, under names without the prefix.
  std::string prefix;
  bool warns = true;  ///< False: no log lines, only the report.
  /// Of the network; 0: it is no classifier. None: its last layer may be for classes. See
  /// WeightReport::head.
  std::optional<int64_t> classes{};
};

struct WeightReport {
  std::string format;  ///< "safetensors", "MindSpore's .ckpt" or "PyTorch's .pth".
  /// Of a .pth, the dict that was taken: "model", "weights.inner"; empty: the top one.
  std::string dict;
  std::vector<std::string> other_dicts;  ///< Other dicts with names of the network.
  std::string stripped;      ///< In front of the file's names: Lightning's "model."; mostly empty.
  std::string other_prefix;  ///< Another one that could have been left out; mostly empty.
  size_t loaded = 0;
  /// A line, if the last layer of the file is for another number of classes, and was left out.
  std::string head;
  std::string positions;  ///< A line, if positions were interpolated; they count as loaded.
  std::vector<std::string> missing;  ///< Of the network, not in the file.
  std::vector<std::string> dropped;  ///< In the file with another shape or type, or not readable.
  std::vector<std::string> unused;   ///< Of the file, not of the network.
};

/// Fills the network (its tensors stay in place) from a file, or from a checkpoint's folder
/// (find_checkpoint() in checkpoint_folder.h). Of the dicts in a .pth it takes that with most
/// tensors of the network, by name and shape. Names are matched across MindSpore's, PyTorch's,
/// timm's and ours. A prefix of the file's names ("model.", "_orig_mod.") is left out if this gives
/// more than twice as many, and half of the network's. Other tensors of the file are ignored;
/// num_batches_tracked may be missing. Floating point numbers are converted to the network's type,
/// and so are integers; trailing dimensions of 1 do not count. Only the needed tensors are read,
/// and all of them before anything is changed.
/// Errors, nothing changed: kNotFound; kCorrupt naming file, tensor and both shapes; kCorrupt if no
/// name matches the network's; kInvalidArgument as load_module(). It is kCorrupt, too, if the bytes
/// of a checkpoint are not those saved.
WeightReport load_weights(const std::filesystem::path& path, torch::nn::Module& module,
                          const WeightOptions& options = {});

}  // namespace lockstep
