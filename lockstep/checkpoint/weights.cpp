#include "lockstep/weights.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "lockstep/base/crc32.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/digested_tensors.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/checkpoint/weight_names.h"
#include "lockstep/checkpoint/weight_table.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

std::vector<int64_t> sizes_of(const StoredWeight& weight) {
  return {weight.shape.begin(), weight.shape.end()};
}

/// Reads tensors, and checks the members of an archive that they are in, each once.
class WeightReader {
 public:
  explicit WeightReader(const ByteSource& file) : file_(file) {}

  /// Errors: kCorrupt, which names the tensor, if its bytes do not have their checksum.
  at::Tensor read(const StoredWeight& weight) {
    const at::ScalarType type = tensor_type(weight.type, weight.name, file_.name());
    uint64_t bytes = 0;
    for (const WeightPiece& piece : weight.pieces) bytes += piece.bytes;
    const auto one = static_cast<uint64_t>(bits(weight.type) / 8);
    const at::Tensor flat = at::empty({static_cast<int64_t>(bytes / one)}, at::dtype(type));
    auto* next = static_cast<char*>(flat.data_ptr());
    for (const WeightPiece& piece : weight.pieces) {
      file_.read(piece.offset, next, piece.bytes);
      check(weight, piece, {next, piece.bytes});
      next += piece.bytes;
    }
    const std::vector<int64_t> shape = sizes_of(weight);
    if (weight.strides.empty()) return flat.view(shape);
    const std::vector<int64_t> strides(weight.strides.begin(), weight.strides.end());
    return flat.as_strided(shape, strides).contiguous();
  }

 private:
  void check(const StoredWeight& weight, const WeightPiece& piece, std::string_view bytes) {
    if (!piece.member || !checked_.insert(piece.member->offset).second) return;
    const bool whole = piece.bytes == piece.member->bytes;
    const uint32_t found = whole ? crc32_of(bytes) : crc32_of_member(*piece.member);
    if (found == piece.member->crc32) return;
    throw_corrupt_tensor(file_.name(), weight.name,
                         "has other bytes than those saved (CRC-32 differs)");
  }

  /// Of one that several tensors share.
  uint32_t crc32_of_member(const SummedBytes& member) const {
    uint32_t crc = 0;
    file_.read_pieces(member.offset, member.bytes,
                      [&](std::string_view piece) { crc = crc32_of(piece, crc); });
    return crc;
  }

  const ByteSource& file_;
  std::unordered_set<uint64_t> checked_;  // offsets of members
};

bool same_but_trailing_ones(const std::vector<uint64_t>& stored, at::IntArrayRef own) {
  const auto extent = [](const auto& shape, size_t i) {
    return i < shape.size() ? static_cast<uint64_t>(shape[i]) : 1;
  };
  for (size_t i = 0; i < std::max(stored.size(), own.size()); ++i) {
    if (extent(stored, i) != extent(own, i)) return false;
  }
  return true;
}

/// The reason why the file's tensor does not fit the network's; empty if it fits.
std::string misfit(const StoredWeight& stored, const at::Tensor& own, const std::string& file) {
  if (!stored.unread.empty()) return stored.unread;
  if (!same_but_trailing_ones(stored.shape, own.sizes())) {
    return fmt::format("has shape [{}], the network's has {}", fmt::join(stored.shape, ", "),
                       own.sizes());
  }
  const at::ScalarType type = tensor_type(stored.type, stored.name, file);
  const auto integral = [](at::ScalarType t) {
    return at::isIntegralType(t, /*includeBool=*/false);
  };
  if (type == own.scalar_type() || (at::isFloatingType(type) && own.is_floating_point()) ||
      (integral(type) && integral(own.scalar_type()))) {
    return "";
  }
  return fmt::format("is {}, the network's is {}", at::toString(type),
                     at::toString(own.scalar_type()));
}

std::vector<std::string> names_in(const WeightTable& table) {
  std::vector<std::string> names;
  for (const StoredWeight& weight : table.weights) names.push_back(weight.name);
  return names;
}

std::vector<NamedShape> shapes_in(const WeightTable& table) {
  std::vector<NamedShape> shapes;
  for (const StoredWeight& weight : table.weights) shapes.push_back({weight.name, weight.shape});
  return shapes;
}

/// A name of a file, which may hold anything.
std::string shown_name(const std::string& name) {
  constexpr size_t kLongest = 120;
  return without_controls(shortened(name, kLongest));
}

/// "a; b; c; ...", of at most eight, each between `quote`.
std::string some_of(const std::vector<std::string>& names, const char* quote = "") {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown(names.begin(), names.begin() + std::min(names.size(), kShown));
  for (std::string& name : shown) name = quote + shown_name(name) + quote;
  return fmt::format("{}{}", fmt::join(shown, "; "), names.size() > kShown ? "; ..." : "");
}

/// Logs the report's list, as one line.
void warn_of(const std::string& file, const std::vector<std::string>& names, const char* what) {
  if (names.empty()) return;
  log_warn(fmt::format("{}: {} {}, so they keep their values: {}", file, names.size(), what,
                       some_of(names)));
}

/// " (its 'model', not 'model_ema'; names without 'model.', not without 'ema.')": the choices among
/// the file's dicts and names; empty if there are none.
std::string choices_of(const WeightReport& report) {
  std::string text;
  if (!report.dict.empty() || !report.other_dicts.empty()) {
    text = report.dict.empty() ? "its top" : fmt::format("its '{}'", shown_name(report.dict));
    if (!report.other_dicts.empty()) text += ", not " + some_of(report.other_dicts, "'");
  }
  if (!report.stripped.empty()) {
    text +=
        fmt::format("{}names without '{}'", text.empty() ? "" : "; ", shown_name(report.stripped));
    if (!report.other_prefix.empty()) {
      text += fmt::format(", not without '{}'", shown_name(report.other_prefix));
    }
  }
  return text.empty() ? "" : fmt::format(" ({})", text);
}

void log_report(const std::string& file, const WeightReport& report, bool strict) {
  if (!report.head.empty()) log_warn(file + ": " + report.head);
  if (!report.positions.empty()) log_info(file + ": " + report.positions);
  warn_of(file, report.dropped, "tensors of the network have another shape or type there");
  warn_of(file, report.missing, "tensors of the network are not in it");
  const std::string choices = choices_of(report);
  if (strict && choices.empty()) return;
  log_info(fmt::format("{}: {} tensors of the network are loaded from {}{}{}", file, report.loaded,
                       report.format, choices,
                       report.unused.empty()
                           ? ""
                           : fmt::format("; left over in it: {} ({})", report.unused.size(),
                                         some_of(report.unused))));
}

/// "classifier.3." of the network's last parameter, in its own order.
std::string last_layer(const torch::nn::Module& module) {
  const auto parameters = module.named_parameters();
  if (parameters.is_empty()) return "";
  const std::string& name = parameters.back().key();
  return name.substr(0, name.rfind('.') + 1);
}

/// The side of the grid of patches in positions (1, 1 + side * side, D). The token of the class
/// comes first. Nothing for other shapes.
std::optional<int64_t> grid_side(at::IntArrayRef shape) {
  if (shape.size() != 3 || shape[0] != 1 || shape[1] < 2) return std::nullopt;
  const int64_t patches = shape[1] - 1;
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  return side * side == patches ? std::optional(side) : std::nullopt;
}

/// (1, 1 + from * from, D) to (1, 1 + side * side, D) float32. The token stays as it is. Patches
/// are interpolated bicubically with antialias, as in timm.
at::Tensor resize_positions(const at::Tensor& positions, int64_t side) {
  const int64_t from = *grid_side(positions.sizes()), width = positions.size(2);
  const at::Tensor values = positions.to(at::kFloat);
  const at::Tensor grid = values.narrow(1, 1, from * from)
                              .reshape({1, from, from, width})
                              .permute({0, 3, 1, 2})
                              .contiguous();  // (1, D, from, from)
  const at::Tensor resized =
      at::_upsample_bicubic2d_aa(grid, {side, side}, /*align_corners=*/false);
  const at::Tensor patches = resized.permute({0, 2, 3, 1}).reshape({1, side * side, width});
  return at::cat({values.narrow(1, 0, 1), patches}, 1);
}

std::vector<std::string> names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

class Loader {
 public:
  Loader(const ByteSource& file, torch::nn::Module& module, const WeightOptions& options)
      : file_(file), reader_(file), options_(options), last_layer_(last_layer(module)) {
    for (const auto& [name, tensor] : module_tensors(module)) {
      if (!name.starts_with(options.prefix)) continue;
      names_.push_back(name);
      own_.push_back(tensor);
    }
    table_ = read_weight_table(
        file, [&](const std::vector<NamedShape>& stored) { return match(stored).count; });
    report_.format = to_string(table_.format);
    report_.dict = table_.dict;
    report_.other_dicts = table_.other_dicts;
  }

  WeightReport run() {
    const NameMatches found = match(shapes_in(table_));
    const auto& matches = found.of_network;
    report_.stripped = found.stripped;
    report_.other_prefix = found.runner_up;
    std::vector<at::Tensor> values(own_.size());
    for (size_t i = 0; i < own_.size(); ++i) {
      if (!matches[i]) {
        miss(names_[i]);
        continue;
      }
      const StoredWeight& stored = table_.weights[*matches[i]];
      if (const auto side = other_grid(i, stored)) {
        values[i] = resize_positions(reader_.read(stored), *side);
        note_positions(stored, *side);
      } else if (fits(i, stored)) {
        values[i] = reader_.read(stored);
      }
    }
    check_any(values);
    for (size_t i = 0; i < own_.size(); ++i) {
      if (values[i].defined()) check_fillable(names_[i], own_[i]);
    }
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < own_.size(); ++i) {
      if (!values[i].defined()) continue;
      own_[i].copy_(values[i].view(own_[i].sizes()));
      ++report_.loaded;
    }
    note_unused(matches);
    return std::move(report_);
  }

 private:
  NameMatches match(const std::vector<NamedShape>& stored) const {
    std::vector<std::string> names;
    for (const NamedShape& each : stored) names.push_back(each.name);
    return match_names_by_prefix(names_, names, options_.prefix, [&](size_t own, size_t in_file) {
      return may_take(own, stored[in_file].shape);
    });
  }

  bool may_take(size_t i, const std::vector<uint64_t>& shape) const {
    return same_but_trailing_ones(shape, own_[i].sizes()) || is_other_head(i, shape) ||
           other_side(i, shape);
  }

  void miss(const std::string& name) {
    if (name.ends_with("num_batches_tracked")) return;
    if (options_.strict) {
      throw_corrupt_tensor(file_.name(), name,
                           "of the network is missing" + did_you_mean(name, names_in(table_)));
    }
    report_.missing.push_back(name);
  }

  /// The side of the network's grid, if the tensor has the positions of a vision transformer, and
  /// only the side of the file's grid differs.
  std::optional<int64_t> other_side(size_t i, const std::vector<uint64_t>& shape) const {
    const at::Tensor& own = own_[i];
    if (names_[i] != "encoder.pos_embedding") return std::nullopt;
    const std::vector<int64_t> sizes(shape.begin(), shape.end());
    const auto from = grid_side(sizes), to = grid_side(own.sizes());
    if (!from || !to || *from == *to || sizes[2] != own.size(2)) return std::nullopt;
    return to;
  }

  /// The same, if the positions can be interpolated.
  std::optional<int64_t> other_grid(size_t i, const StoredWeight& stored) const {
    const auto to = other_side(i, stored.shape);
    if (options_.strict || !to) return std::nullopt;
    const auto type = tensor_type(stored.type, stored.name, file_.name());
    return at::isFloatingType(type) && own_[i].is_floating_point() ? to : std::nullopt;
  }

  void note_positions(const StoredWeight& stored, int64_t side) {
    report_.positions = fmt::format(
        "its positions '{0}' are for {1} x {1} patches, the network's for {2} x {2}: they are "
        "interpolated bicubically",
        shown_name(stored.name), *grid_side(sizes_of(stored)), side);
  }

  bool fits(size_t i, const StoredWeight& stored) {
    const std::string fault = misfit(stored, own_[i], file_.name());
    if (fault.empty()) return true;
    if (options_.strict) throw_corrupt_tensor(file_.name(), stored.name, fault);
    if (is_other_head(i, stored.shape)) {
      report_.head = fmt::format(
          "its last layer '{}' is for {} classes, the network's for {}: it is left out, and the "
          "network's keeps its values",
          stored.name.substr(0, stored.name.rfind('.')), stored.shape[0], own_[i].size(0));
    } else {
      report_.dropped.push_back(fmt::format("'{}' {}", stored.name, fault));
    }
    return false;
  }

  /// The last layer, and only its number of classes differs.
  bool is_other_head(size_t i, const std::vector<uint64_t>& shape) const {
    const at::IntArrayRef own = own_[i].sizes();
    if (last_layer_.empty() || !names_[i].starts_with(last_layer_)) return false;
    if (own.empty() || shape.size() != own.size()) return false;
    std::vector<uint64_t> as_stored(own.begin(), own.end());
    const bool counts = !options_.classes || own[0] == *options_.classes;
    if (as_stored[0] == shape[0] || !counts) return false;
    as_stored[0] = shape[0];
    return as_stored == shape;
  }

  void note_unused(const std::vector<std::optional<size_t>>& matches) {
    std::vector<bool> used(table_.weights.size());
    for (const auto& match : matches) {
      if (match) used[*match] = true;
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) report_.unused.push_back(table_.weights[i].name);
    }
  }

  void check_any(const std::vector<at::Tensor>& values) const {
    for (const at::Tensor& value : values) {
      if (value.defined()) return;
    }
    const bool some = !report_.dropped.empty() || !report_.head.empty();
    if (some && options_.prefix.empty() && report_.stripped.empty()) return;
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: none of its {} tensors ('{}' ...) is one of the network's ('{}' ...)",
                    file_.name(), table_.weights.size(),
                    table_.weights.empty() ? "" : table_.weights[0].name,
                    names_.empty() ? options_.prefix : names_[0]));
  }

  const ByteSource& file_;
  WeightReader reader_;
  const WeightOptions& options_;
  WeightTable table_;
  const std::string last_layer_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> own_;
  WeightReport report_;
};

}  // namespace

TensorMap module_tensors(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors.emplace(item.key(), item.value());
  }
  return tensors;
}

void internal::check_module(const torch::nn::Module& module, const TensorMap& tensors,
                            const std::string& file) {
  const TensorMap own = module_tensors(module);
  for (const auto& [name, tensor] : own) {
    check_fillable(name, tensor);
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw_corrupt_tensor(file, name, "of the network is missing");
    const at::Tensor& stored = found->second;
    if (stored.sizes() != tensor.sizes()) {
      throw_corrupt_tensor(
          file, name,
          fmt::format("has shape {}, the network's has {}", stored.sizes(), tensor.sizes()));
    }
    if (stored.scalar_type() != tensor.scalar_type()) {
      throw_corrupt_tensor(
          file, name,
          fmt::format("is {}, the network's is {}", at::toString(stored.scalar_type()),
                      at::toString(tensor.scalar_type())));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (own.contains(name)) continue;
    throw_corrupt_tensor(file, name,
                         "is not one of the network's" + did_you_mean(name, names_of(own)));
  }
}

void load_module(torch::nn::Module& module, const TensorMap& tensors, const std::string& file) {
  check_module(module, tensors, file);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : module_tensors(module)) tensor.copy_(tensors.at(name));
}

namespace {

namespace fs = std::filesystem;

/// Through a link that moves later, two files of the folder could be of two checkpoints.
fs::path without_links(const fs::path& folder) {
  std::error_code error;
  fs::path real = fs::canonical(folder.empty() ? "." : folder, error);
  return error ? folder : real;
}

/// The file of a checkpoint that `path` is, in its folder or as a hard link beside `best`.
std::optional<fs::path> checkpoint_file(const fs::path& path) {
  for (const fs::path& folder : {path.parent_path(), without_links(path.parent_path() / "best")}) {
    for (const char* name : {kModelFile, kEmaFile}) {
      std::error_code error;
      const bool same = fs::equivalent(path, folder / name, error);
      if (same && !error && fs::exists(folder / kStateFile, error)) return folder / name;
    }
  }
  return std::nullopt;
}

/// Opens a file of weights. That of a checkpoint has the bytes that were saved.
std::unique_ptr<FileBytes> open_weights(const fs::path& given) {
  const fs::path path = without_links(given.parent_path()) / given.filename();
  const auto saved_file = checkpoint_file(path);
  auto file = FileBytes::open(saved_file.value_or(given), given.string());
  if (!saved_file) return file;
  const fs::path state = saved_file->parent_path() / kStateFile;
  const std::string text = read_file(state);
  if (!may_be_training_state(text)) return file;
  const auto saved = decode_training_state(text, state.string()).files;
  check_saved(*file, digest_of(saved, saved_file->filename().string(), state));
  return file;
}

}  // namespace

TensorMap read_weights(const std::filesystem::path& path) {
  const auto file = open_weights(path);
  WeightReader reader(*file);
  TensorMap tensors;
  for (const StoredWeight& weight : read_weight_table(*file).weights) {
    if (weight.unread.empty()) tensors.emplace(weight.name, reader.read(weight));
  }
  return tensors;
}

WeightReport load_weights(const std::filesystem::path& path, torch::nn::Module& module,
                          const WeightOptions& options) {
  const auto file = open_weights(weights_in(path, /*averaged=*/false));
  WeightReport report = Loader(*file, module, options).run();
  if (options.warns) log_report(file->name(), report, options.strict);
  return report;
}

}  // namespace lockstep
