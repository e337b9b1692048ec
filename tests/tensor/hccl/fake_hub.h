#pragma once
// Where the operations of one stand-in communicator meet: a thread in the process that made the
// root info, to which every rank has a connection.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::testing::hccl {

using Bytes = std::vector<std::byte>;

enum class Operation : int {
  kJoin,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kSend,
  kRecv
};

/// One rank's part. `bytes` of data follow it.
struct Request {
  Operation operation = Operation::kJoin;
  int rank = 0;
  int size = 0;  ///< Of the communicator.
  int type = 0;
  int reduction = 0;
  int peer = 0;  ///< Root, destination or source.
  uint64_t count = 0;
  uint64_t bytes = 0;
};
/// The result for it. `bytes` of data follow it.
struct Reply {
  int error;
  uint64_t bytes;
};

/// Starts a hub and returns its port on the loopback.
int start_hub();

/// A connection to the hub at `port`; -1 if there is none.
int connect_to_hub(int port);

/// Sends the request and waits for the reply, whose data it stores. Returns its error; kRemote if
/// the hub is gone.
int ask_hub(int socket, const Request& request, const void* data, Bytes& result);

inline constexpr int kParameter = 1, kUnsupported = 5, kRemote = 21;  // HcclResult

/// Bytes of an element of HCCL's type; 0: there is no such type.
uint64_t element_bytes(int type);

}  // namespace lockstep::testing::hccl
