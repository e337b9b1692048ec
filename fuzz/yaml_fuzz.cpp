// Any bytes as a configuration. What the reader accepts must be written and read again to the same
// tree; the schema and the overrides must accept or refuse it, never fall over.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"

namespace {

using namespace lockstep;

void read_schema(const Node& tree) {
  try {
    read_config(tree);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
  }
}

void apply(const std::string& text) {
  Node tree;
  const std::string items[] = {text};
  try {
    apply_overrides(tree, items);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  apply(text);
  Node tree;
  try {
    tree = parse_yaml(text, "fuzz");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
    return 0;
  }
  const std::string written = write_yaml(tree);
  // A small text may grow by its aliases beyond what the reader takes.
  if (written.size() < YamlLimits().text_bytes / 2 &&
      !same_values(parse_yaml(written, "again"), tree)) {
    std::abort();
  }
  read_schema(tree);
  return 0;
}
