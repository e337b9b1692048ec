#pragma once
// What a pickle says, without carrying any of it out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A value of a pickle. Values refer to each other by index, so that neither depth nor cycles cost
/// anything.
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
    kCall,        ///< `items`: what would be called, and its arguments. Nothing is called.
    kPersistent,  ///< `items`: the one value that identifies it.
    kOther,       ///< Something that weights do not need (a float, a set, an object).
  };
  Kind kind = Kind::kOther;
  int64_t number = 0;
  std::string text;
  std::vector<uint32_t> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t top = 0;
};

/// Longest pickle that is read.
inline constexpr uint64_t kMaxPickleBytes = uint64_t{16} << 20;

/// Reads pickles of protocols 2 to 5. Only their structure comes out: classes are names, calls are
/// kCall, an object's state is dropped. Memory: some hundred bytes a byte, at most.
/// Errors: kCorrupt naming `file` and byte: cut off, an operation that torch.save does not use,
/// an operand that is not there, more than kMaxPickleBytes.
Pickle read_pickle(std::string_view bytes, const std::string& file);

}  // namespace lockstep
