#include "lockstep/version.h"

#include <bit>

namespace lockstep {
namespace {

// Increase it whenever bytes between processes change their meaning: store, handshake, collectives,
// segments.
constexpr int kWireProtocol = 2;

}  // namespace

const std::string& version() {
  static const std::string text = LOCKSTEP_VERSION;
  return text;
}

const std::string& build_id() {
  static const std::string text = version() + "/w" + std::to_string(kWireProtocol) +
                                  (std::endian::native == std::endian::little ? "/le" : "/be") +
                                  std::to_string(8 * sizeof(void*));
  return text;
}

}  // namespace lockstep
