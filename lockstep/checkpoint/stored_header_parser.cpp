#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::json;

[[noreturn]] void corrupt(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: not a valid safetensors file: {}", file, what));
}

// Names come from the file: an error must stay one short line.
std::string shown(const std::string& name) {
  return json(shortened(name, 100)).dump(-1, ' ', true, json::error_handler_t::replace);
}

/// Receives the header's JSON token by token. Only the format's own shape is accepted. So no tree
/// is built, nothing nests deeper than a list in a tensor, and a duplicate name is detected.
class HeaderHandler final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderHandler(const std::string& file) : file_(file) {}

  StoredHeader take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (at_ == At::kStart) return go(At::kTop);
    if (at_ == At::kEntry && name_ == "__metadata__") return go(At::kMetadata);
    if (at_ != At::kEntry) unexpected("an object");
    header_.tensors.emplace_back();
    tensor().name = name_;
    seen_fields_.clear();
    return go(At::kTensor);
  }

  bool key(std::string& text) override {
    if (at_ == At::kTop) {
      if (!names_.insert(text).second) corrupt(file_, shown(text) + " is there twice");
      name_ = text;
      return go(At::kEntry);
    }
    if (at_ == At::kMetadata) {
      if (header_.metadata.contains(text)) {
        corrupt(file_, "metadata " + shown(text) + " is there twice");
      }
      field_ = text;
      return go(At::kMetadataValue);
    }
    field_ = text;
    if (!seen_fields_.insert(text).second) corrupt(file_, where() + " is there twice");
    if (text == "dtype") return go(At::kDtype);
    if (text == "shape") return go(At::kShapeStart);
    if (text == "data_offsets") return go(At::kOffsetsStart);
    corrupt(file_, where() + " is unknown (known: dtype, shape, data_offsets)");
  }

  bool string(std::string& text) override {
    if (at_ == At::kMetadataValue) {
      header_.metadata[field_] = text;
      return go(At::kMetadata);
    }
    if (at_ != At::kDtype) unexpected("a text");
    const auto type = parse_stored_type(text);
    if (!type)
      corrupt(file_, fmt::format("tensor {}: unknown dtype {}", shown(name_), shown(text)));
    tensor().type = *type;
    return go(At::kTensor);
  }

  bool start_array(size_t) override {
    if (at_ == At::kShapeStart) return go(At::kShape);
    if (at_ != At::kOffsetsStart) unexpected("a list");
    offsets_.clear();
    return go(At::kOffsets);
  }

  bool number_unsigned(uint64_t value) override {
    if (at_ == At::kShape) {
      tensor().shape.push_back(value);
    } else if (at_ == At::kOffsets && offsets_.size() < 2) {
      offsets_.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool end_array() override {
    if (at_ == At::kShape) return go(At::kTensor);
    if (offsets_.size() != 2) corrupt(file_, where() + " must be [begin, end]");
    tensor().begin = offsets_[0];
    tensor().end = offsets_[1];
    return go(At::kTensor);
  }

  bool end_object() override {
    if (at_ == At::kTop) return go(At::kEnd);
    if (at_ == At::kMetadata) return go(At::kTop);
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!seen_fields_.contains(field)) {
        corrupt(file_, fmt::format("tensor {} has no {}", shown(name_), field));
      }
    }
    return go(At::kTop);
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a truth value"); }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a number not whole"); }
  bool binary(json::binary_t&) override { unexpected("bytes"); }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    corrupt(file_, fmt::format("no JSON (or no UTF-8) at byte {} of the header", position));
  }

 private:
  enum class At {
    kStart,
    kTop,            // among the names
    kEntry,          // after a name
    kMetadata,       // among metadata's keys
    kMetadataValue,  // after one
    kTensor,         // among a tensor's fields
    kDtype,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kEnd,
  };

  bool go(At next) {
    at_ = next;
    return true;
  }
  StoredTensor& tensor() { return header_.tensors.back(); }

  std::string where() const {
    if (at_ == At::kStart || at_ == At::kTop) return "the header";
    if (at_ == At::kMetadata || at_ == At::kMetadataValue) return "metadata " + shown(field_);
    if (at_ == At::kEntry) return shown(name_);
    return fmt::format("tensor {}: {}", shown(name_), shown(field_));
  }
  [[noreturn]] void unexpected(const char* what) {
    corrupt(file_, fmt::format("{} is {}, which does not belong there", where(), what));
  }

  const std::string& file_;
  At at_ = At::kStart;
  StoredHeader header_;
  std::set<std::string> names_;
  std::set<std::string> seen_fields_;
  std::vector<uint64_t> offsets_;
  std::string name_;   // of the present entry
  std::string field_;  // of the present tensor or metadata
};

/// Checks that sizes fit shapes, and that the tensors cover the bytes behind the header exactly.
void check_layout(StoredHeader& header, uint64_t buffer_bytes, const std::string& file) {
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
            });
  uint64_t offset = 0;
  for (const StoredTensor& tensor : header.tensors) {
    const std::string where = fmt::format("tensor {} at bytes [{}, {}) after the header",
                                          shown(tensor.name), tensor.begin, tensor.end);
    if (tensor.begin > tensor.end) corrupt(file, where + ": ends before it begins");
    const auto bytes = stored_bytes(tensor.type, tensor.shape);
    if (!bytes || *bytes != tensor.end - tensor.begin) {
      corrupt(file, fmt::format("{}: {} [{}] needs {} bytes", where, to_string(tensor.type),
                                fmt::join(tensor.shape, ", "),
                                bytes ? std::to_string(*bytes) : "over 2^64 or broken"));
    }
    if (tensor.begin != offset) {
      corrupt(file, fmt::format("{}: the one before ends at {}", where, offset));
    }
    if (tensor.end > buffer_bytes) {
      corrupt(file,
              fmt::format("{}: the file has only {} there; it was cut off", where, buffer_bytes));
    }
    offset = tensor.end;
  }
  if (offset != buffer_bytes) {
    corrupt(file, fmt::format("{} bytes behind the last tensor", buffer_bytes - offset));
  }
}

}  // namespace

uint64_t stored_header_bytes(std::string_view first_bytes, uint64_t file_bytes,
                             const std::string& file) {
  if (first_bytes.size() < 8 || file_bytes < 8) {
    corrupt(file, fmt::format("{} bytes, shorter than any", file_bytes));
  }
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = length << 8 | static_cast<uint8_t>(first_bytes[static_cast<size_t>(i)]);
  }
  if (length > kMaxStoredHeaderBytes) {
    corrupt(file, fmt::format("a header of {} bytes, at most {} are allowed", length,
                              kMaxStoredHeaderBytes));
  }
  if (length > file_bytes - 8) {
    corrupt(file, fmt::format("a header of {} bytes in a file of {}", length, file_bytes));
  }
  return length;
}

StoredHeader parse_stored_header(std::string_view start, uint64_t file_bytes,
                                 const std::string& file) {
  const uint64_t length = stored_header_bytes(start, file_bytes, file);
  if (start.size() < 8 + length) {
    throw Error(ErrorCode::kInternal, "parse_stored_header() was given less than the header");
  }
  const std::string_view text = start.substr(8, length);
  if (text.empty() || text.front() != '{') corrupt(file, "the header does not start with '{'");
  HeaderHandler handler(file);
  json::sax_parse(text.begin(), text.end(), &handler);
  StoredHeader header = handler.take();
  header.data_begin = 8 + length;
  check_layout(header, file_bytes - header.data_begin, file);
  return header;
}

}  // namespace lockstep::inline internal
