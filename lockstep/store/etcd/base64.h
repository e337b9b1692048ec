#pragma once

#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// RFC 4648, with padding.
std::string encode_base64(std::string_view bytes);
/// Errors: kCorrupt if `text` is not a result of encode_base64().
std::string decode_base64(std::string_view text);

}  // namespace lockstep::inline internal
