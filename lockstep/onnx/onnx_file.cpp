#include "lockstep/onnx/onnx_file.h"

#include <cstring>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;

/// A message of protobuf, field by field.
class Message {
 public:
  Message& number(uint64_t field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(uint64_t field, float value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);  // little-endian, as this machine
    varint(field << 3 | 5);
    bytes_.append(bytes, sizeof bytes);
    return *this;
  }
  Message& text(uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint64_t field, const Message& value) { return text(field, value.bytes_); }
  std::string take() { return std::move(bytes_); }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// The numbers of the fields and kinds are those of onnx.proto.

/// A call for each type of value.
struct AttributeFields {
  Message& message;
  void operator()(int64_t value) const { message.number(3, value).number(20, 2); }
  void operator()(float value) const { message.real(2, value).number(20, 1); }
  void operator()(const std::vector<int64_t>& values) const {
    for (const int64_t value : values) message.number(8, value);
    message.number(20, 7);
  }
};

Message node_message(const OnnxNode& node, size_t index) {
  Message message;
  for (const auto& input : node.inputs) message.text(1, input);
  message.text(2, node.output);
  message.text(3, node.op + "_" + std::to_string(index)).text(4, node.op);
  for (const auto& [name, value] : node.attributes) {
    Message attribute;
    attribute.text(1, name);
    std::visit(AttributeFields{attribute}, value);
    message.message(5, attribute);
  }
  return message;
}

Message initializer_message(const OnnxInitializer& initializer) {
  Message message;
  for (const int64_t dim : initializer.dims) message.number(1, dim);
  message.number(2, static_cast<int64_t>(initializer.type));
  message.text(8, initializer.name).text(9, initializer.bytes);
  return message;
}

Message value_message(const OnnxValue& value) {
  Message shape;
  shape.message(1, Message().text(2, "N"));
  for (const int64_t dim : value.dims) shape.message(1, Message().number(1, dim));
  Message tensor;
  tensor.number(1, static_cast<int64_t>(OnnxType::kFloat)).message(2, shape);
  return Message().text(1, value.name).message(2, Message().message(1, tensor));
}

Message graph_message(const OnnxModel& model) {
  Message graph;
  for (size_t i = 0; i < model.nodes.size(); ++i) graph.message(1, node_message(model.nodes[i], i));
  graph.text(2, model.name);
  for (const auto& initializer : model.initializers) {
    graph.message(5, initializer_message(initializer));
  }
  graph.message(11, value_message(model.input)).message(12, value_message(model.output));
  return graph;
}

void check_bytes(const OnnxModel& model) {
  uint64_t bytes = 0;
  for (const auto& initializer : model.initializers) bytes += initializer.bytes.size();
  if (bytes <= kMostBytes) return;
  throw Error(ErrorCode::kInvalidArgument, "an ONNX file holds at most 2 GiB, the network has " +
                                               format_bytes(static_cast<int64_t>(bytes)));
}

}  // namespace

std::string encode_onnx(const OnnxModel& model) {
  check_bytes(model);
  Message file;
  file.number(1, kOnnxFormat).text(2, "lockstep").message(7, graph_message(model));
  file.message(8, Message().text(1, "").number(2, kOnnxOpset));
  return file.take();
}

}  // namespace lockstep::inline internal
