#pragma once
// Whose address is whose.

#include <string>

namespace lockstep {

/// Does `host` (name or address) mean this host, by any of its addresses? A name that cannot be
/// looked up is another's. Cost: one look-up.
bool is_own_address(const std::string& host);

}  // namespace lockstep
