#pragma once
// The structure of a pickle, read without executing any of it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// A value of a pickle. Values refer to each other by index, so that neither depth nor cycles are a
/// problem.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,        ///< `number`.
    kInt,         ///< `number`.
    kText,        ///< `text`: str or bytes.
    kTuple,       ///< `items`.
    kList,        ///< `items`.
    kDict,        ///< `items`: key, value, key, value ... An OrderedDict too.
    kGlobal,      ///< `text`: "module name".
    kCall,        ///< `items`: the callee and its arguments. Nothing is called.
    kPersistent,  ///< `items`: the one value that identifies it.
    kOther,       ///< A value that weights do not need (a float, a set, an object).
  };
  Kind kind = Kind::kOther;
  int64_t number = 0;
  std::string text;
  std::vector<uint32_t> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t top = 0;
  uint64_t bytes = 0;  ///< Its length: other bytes may follow.
};

/// Size of the longest pickle that is read.
inline constexpr uint64_t kMaxPickleBytes = uint64_t{16} << 20;

/// Reads the first pickle of `bytes`, of protocols 2 to 5. Only their structure is returned:
/// classes are names, calls are kCall, an object's state is dropped. Memory: at most some hundred
/// bytes per byte. Errors: kCorrupt, which names `file` and byte: cut off, an operation that
/// torch.save does not use, a missing operand, more than kMaxPickleBytes.
Pickle read_pickle(std::string_view bytes, const std::string& file);

}  // namespace lockstep::inline internal
