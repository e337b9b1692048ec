#pragma once
// The bytes that a client of PyTorch's TCPStore sends. Pure.
//
//   request := u8 op, then by op
//     set, append, queue_push                   string key, string value
//     compare_set                               string key, string expected, string desired
//     get, delete_key, queue_pop, queue_len     string key
//     add, barrier                              string key, i64
//     check, wait, multi_get                    u64 count, count strings (keys)
//     multi_set                                 u64 count, count of { string key, string value }
//     ping                                      u32
//     num_keys, cancel_wait, list_keys          nothing
//   string  := u64 size, bytes
//
// Integers are little-endian. A client of PyTorch 2.1 or newer begins with op 0 and a magic u32,
// and numbers its ops as TorchOp. An older one begins with any op of an older numbering, which ends
// at delete_key. Both are read here: the launcher does not know which PyTorch its workers have.
// Source: c10d's TCPStoreBackend.hpp of PyTorch 2.13 and TCPStore.cpp of 1.13.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// The values are those on the wire since PyTorch 2.1; ops were only ever added at the end.
enum class TorchOp : uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
};

/// Bounds of torch's own server.
inline constexpr size_t kMaxTorchKeyBytes = 8 << 10;
inline constexpr size_t kMaxTorchValueBytes = 8 << 20;
inline constexpr size_t kMaxTorchKeys = 128 << 10;
/// Ours: keys and values of one request. A server without it would keep a terabyte.
inline constexpr size_t kMaxTorchRequestBytes = 64 << 20;

struct TorchRequest {
  TorchOp op = TorchOp::kPing;
  std::vector<std::string> keys;
  std::vector<std::string>
      values;          ///< compare_set: expected, desired. multi_set: one for each key.
  int64_t number = 0;  ///< add, barrier; ping's number.
};

/// Splits one client's stream into requests. Allocates for received bytes, never for an announced
/// size.
class TorchReader {
 public:
  void append(std::string_view bytes);

  /// The next whole request, never kValidate. Errors: kCorrupt (an op that there is not, a bound
  /// above): what follows cannot be read.
  std::optional<TorchRequest> next();

  /// It began as clients of PyTorch 2.1 or newer do.
  bool greeted() const { return numbering_ == Numbering::kNew; }
  /// Memory of what has come and is no whole request yet.
  size_t unfinished_bytes() const;

 private:
  enum class Numbering { kUnknown, kNew, kOld };

  bool recognise();
  bool begin_request();
  bool read_item();
  bool read_string(size_t most, const char* what, std::vector<std::string>* to);
  template <class Number>
  std::optional<Number> read_number();
  size_t available() const { return buffer_.size() - begin_; }
  void forget_read();

  std::string buffer_;
  size_t begin_ = 0;  ///< Bytes of buffer_ that have been read.
  Numbering numbering_ = Numbering::kUnknown;

  // The request that is being read.
  std::optional<TorchRequest> request_;
  std::optional<uint64_t> items_;  ///< Keys with their values that it has; nothing: not read yet.
  size_t bytes_ = 0;               ///< Of its keys and values so far.
};

}  // namespace lockstep::inline internal
