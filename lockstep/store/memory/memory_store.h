#pragma once

#include <memory>

#include "lockstep/store/store.h"

namespace lockstep {

/// A store inside this process: for one rank, and for ranks that are threads.
std::shared_ptr<Store> make_memory_store();

}  // namespace lockstep
