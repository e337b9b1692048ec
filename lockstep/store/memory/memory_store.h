#pragma once

#include <memory>

#include "lockstep/store.h"

namespace lockstep {

/// A store inside this process: for one rank, and for ranks that are threads.
std::shared_ptr<Store> make_memory_store();

/// Another client of a store that make_memory_store() or this function made, as another process
/// would have one: what it holds ends with it. The keys live as long as one of the clients.
/// Errors: kInvalidArgument when `store` is of another kind.
std::shared_ptr<Store> make_memory_client(const std::shared_ptr<Store>& store);

}  // namespace lockstep
