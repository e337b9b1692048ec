// `lockstep doctor libtorch`: prints the libtorch of the programs of this installation, as one line
// of JSON. `lockstep doctor` compares it between hosts.

#include <ATen/Version.h>
#include <torch/version.h>

#include <cstdio>
#include <string>

namespace {

/// "AVX2", from libtorch's line about the instruction set of its kernels.
std::string instruction_set_in_use() {
  const std::string config = at::show_config();
  const std::string label = "CPU capability usage: ";
  const size_t begin = config.find(label);
  if (begin == std::string::npos) return "";
  const size_t value = begin + label.size();
  return config.substr(
      value, config.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", value) - value);
}

}  // namespace

int main() {
  std::printf("{\"version\": \"%s\", \"instruction_set\": \"%s\"}\n", TORCH_VERSION,
              instruction_set_in_use().c_str());
  return 0;
}
