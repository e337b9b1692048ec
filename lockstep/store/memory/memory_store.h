#pragma once

#include <memory>

#include "lockstep/store.h"

namespace lockstep::inline internal {

/// A store inside this process: for one rank, and for ranks that are threads.
std::shared_ptr<Store> make_memory_store();

/// Another client of a store from make_memory_store() or this function, like another process: its
/// leased keys end with it. The keys live as long as any client. Errors: kInvalidArgument if
/// `store` is of another kind.
std::shared_ptr<Store> make_memory_client(const std::shared_ptr<Store>& store);

}  // namespace lockstep::inline internal
