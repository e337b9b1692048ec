#include "lockstep/checkpoint/mindspore_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

struct MindSporeType {
  std::string_view name;
  StoredType type;
};

constexpr std::array<MindSporeType, 13> kMindSporeTypes = {{
    {"Int8", StoredType::kI8},
    {"UInt8", StoredType::kU8},
    {"Int16", StoredType::kI16},
    {"UInt16", StoredType::kU16},
    {"Int32", StoredType::kI32},
    {"UInt32", StoredType::kU32},
    {"Int64", StoredType::kI64},
    {"UInt64", StoredType::kU64},
    {"Float16", StoredType::kF16},
    {"Float32", StoredType::kF32},
    {"Float64", StoredType::kF64},
    {"BFloat16", StoredType::kBf16},
    {"Bool", StoredType::kBool},
}};

constexpr uint64_t kMaxName = 4096;
constexpr size_t kMaxDims = 64;

// Names come from the file, so keep them short and printable.
std::string plain(std::string_view name) {
  std::string text(name.substr(0, 200));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

/// A message, or the file: its bytes [at, end), read through a small window.
class Wire {
 public:
  explicit Wire(const ByteSource& file) : file_(file) {}

  [[noreturn]] void corrupt(uint64_t at, const std::string& what) const {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: not a valid .ckpt file at byte {}: {}", file_.name(), at, what));
  }

  uint64_t varint(uint64_t& at, uint64_t end) {
    const uint64_t begin = at;
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= end) corrupt(begin, "cut off in a number");
      const auto byte = static_cast<uint8_t>(get(at++));
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    corrupt(begin, "a number beyond 64 bits");
  }

  /// Reads the length of a field: returns its end; `at` is then its beginning.
  uint64_t length(uint64_t& at, uint64_t end) {
    const uint64_t begin = at;
    const uint64_t bytes = varint(at, end);
    if (bytes > end - at) {
      corrupt(begin, fmt::format("a field of {} bytes where {} are left; was it cut off?", bytes,
                                 end - at));
    }
    return at + bytes;
  }

  std::string text(uint64_t& at, uint64_t end, uint64_t most) {
    const uint64_t stop = length(at, end);
    if (stop - at > most) corrupt(at, fmt::format("a name of {} bytes", stop - at));
    std::string bytes = file_.read(at, stop - at);
    at = stop;
    return bytes;
  }

  void skip(uint64_t& at, uint64_t end, uint64_t key) {
    const uint64_t begin = at;
    uint64_t bytes = 0;
    switch (key & 7) {
      case 0:
        varint(at, end);
        return;
      case 1:
        bytes = 8;
        break;
      case 2:
        at = length(at, end);
        return;
      case 5:
        bytes = 4;
        break;
      default:
        corrupt(begin, fmt::format("field type {} has no place there", key & 7));
    }
    if (bytes > end - at) corrupt(begin, "cut off in a field");
    at += bytes;
  }

 private:
  char get(uint64_t at) {
    if (at < window_at_ || at >= window_at_ + window_.size()) {
      window_at_ = at;
      window_ = file_.read(at, std::min<uint64_t>(file_.size() - at, 4096));
    }
    return window_[at - window_at_];
  }

  const ByteSource& file_;
  std::string window_;
  uint64_t window_at_ = 0;
};

/// A Value as stored.
struct RawValue {
  std::string tag;
  std::string type;
  std::vector<uint64_t> dims;
  std::optional<WeightPiece> content;
};

constexpr uint64_t field_key(uint64_t number, uint64_t wire_type) {
  return number << 3 | wire_type;
}

void read_tensor(Wire& wire, uint64_t at, uint64_t end, RawValue& value) {
  const auto add_dim = [&](uint64_t dim) {
    if (value.dims.size() == kMaxDims) wire.corrupt(at, "a tensor of too many dimensions");
    value.dims.push_back(dim);
  };
  while (at < end) {
    const uint64_t key = wire.varint(at, end);
    if (key == field_key(1, 0)) {
      add_dim(wire.varint(at, end));
    } else if (key == field_key(1, 2)) {  // packed
      const uint64_t stop = wire.length(at, end);
      while (at < stop) add_dim(wire.varint(at, stop));
    } else if (key == field_key(2, 2)) {
      value.type = wire.text(at, end, kMaxName);
    } else if (key == field_key(3, 2)) {
      const uint64_t stop = wire.length(at, end);
      value.content = WeightPiece{at, stop - at};
      at = stop;
    } else {
      wire.skip(at, end, key);
    }
  }
}

RawValue read_value(Wire& wire, uint64_t at, uint64_t end) {
  RawValue value;
  bool tensor = false;
  const uint64_t begin = at;
  while (at < end) {
    const uint64_t key = wire.varint(at, end);
    if (key == field_key(1, 2)) {
      value.tag = wire.text(at, end, kMaxName);
    } else if (key == field_key(2, 2)) {
      if (tensor) wire.corrupt(at, "two tensors in one value");
      tensor = true;
      const uint64_t stop = wire.length(at, end);
      read_tensor(wire, at, stop, value);
      at = stop;
    } else {
      wire.skip(at, end, key);
    }
  }
  if (value.tag.empty()) wire.corrupt(begin, "a value without a name");
  return value;
}

/// Joins slices, and checks each tensor when it is complete.
class TableMaker {
 public:
  explicit TableMaker(const ByteSource& file) : file_(file) {}

  void add(RawValue value) {
    if (!value.content || value.type == "str" || value.type == "random_op") return;  // not a tensor
    if (!open_ || open_->name != value.tag) {
      close();
      begin(value);
    } else if (value.dims != open_->shape || value.type != open_type_) {
      corrupt(value.tag, "comes in slices of different dims or types");
    }
    open_->pieces.push_back(*value.content);
  }

  WeightTable finish() {
    close();
    if (table_.weights.empty()) {
      throw Error(ErrorCode::kCorrupt, file_.name() + ": a .ckpt file without parameters");
    }
    return std::move(table_);
  }

 private:
  [[noreturn]] void corrupt(const std::string& name, const std::string& what) const {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: parameter '{}' {}", file_.name(), plain(name), what));
  }

  void begin(const RawValue& value) {
    if (!names_.insert(value.tag).second) corrupt(value.tag, "is there twice");
    const auto row =
        std::find_if(kMindSporeTypes.begin(), kMindSporeTypes.end(),
                     [&](const MindSporeType& each) { return each.name == value.type; });
    if (row == kMindSporeTypes.end()) {
      corrupt(value.tag, fmt::format("has the unknown type '{}'", plain(value.type)));
    }
    open_ = StoredWeight{value.tag, row->type, value.dims, {}, {}};
    open_type_ = value.type;
  }

  void close() {
    if (!open_) return;
    uint64_t bytes = 0;
    for (const WeightPiece& piece : open_->pieces) bytes += piece.bytes;
    const auto one = static_cast<uint64_t>(bits(open_->type) / 8);
    if (open_->shape == std::vector<uint64_t>{0} && bytes == one) open_->shape.clear();
    const auto wanted = stored_bytes(open_->type, open_->shape);
    if (wanted != bytes) {
      corrupt(open_->name, fmt::format("of {} [{}] has {} bytes", open_type_,
                                       fmt::join(open_->shape, ", "), bytes));
    }
    table_.weights.push_back(std::move(*open_));
    open_.reset();
  }

  const ByteSource& file_;
  WeightTable table_;
  std::optional<StoredWeight> open_;
  std::string open_type_;
  std::unordered_set<std::string> names_;
};

void put_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void put_text(std::string& bytes, uint64_t number, std::string_view text) {
  put_varint(bytes, field_key(number, 2));
  put_varint(bytes, text.size());
  bytes += text;
}

}  // namespace

WeightTable parse_mindspore(const ByteSource& file) {
  Wire wire(file);
  TableMaker table(file);
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t begin = at;
    if (wire.varint(at, file.size()) != field_key(1, 2)) {
      wire.corrupt(begin, "no parameter begins there");
    }
    const uint64_t end = wire.length(at, file.size());
    table.add(read_value(wire, at, end));
    at = end;
  }
  return table.finish();
}

std::string mindspore_message_start(std::string_view name, StoredType type,
                                    const std::vector<uint64_t>& shape, uint64_t content_bytes) {
  const auto row = std::find_if(kMindSporeTypes.begin(), kMindSporeTypes.end(),
                                [&](const MindSporeType& each) { return each.type == type; });
  if (row == kMindSporeTypes.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tensor '{}': a .ckpt file has no type {}", name, to_string(type)));
  }
  std::string tensor;
  for (const uint64_t dim : shape.empty() ? std::vector<uint64_t>{0} : shape) {
    put_varint(tensor, field_key(1, 0));
    put_varint(tensor, dim);
  }
  put_text(tensor, 2, row->name);
  put_varint(tensor, field_key(3, 2));
  put_varint(tensor, content_bytes);

  std::string value;
  put_text(value, 1, name);
  put_varint(value, field_key(2, 2));
  put_varint(value, tensor.size() + content_bytes);
  value += tensor;

  std::string message;
  put_varint(message, field_key(1, 2));
  put_varint(message, value.size() + content_bytes);
  return message + value;
}

}  // namespace lockstep::inline internal
