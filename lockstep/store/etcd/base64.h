#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// RFC 4648, with padding.
std::string encode_base64(std::string_view bytes);
/// Errors: kCorrupt when `text` is not what encode_base64() makes.
std::string decode_base64(std::string_view text);

}  // namespace lockstep
