#include "lockstep/checkpoint/pickle.h"

#include <fmt/format.h>

#include <cstdint>

#include "lockstep/checkpoint/pickle_stack.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

// The operations of pickles that torch.save() writes.

/// The letters are those of Python's pickletools.
enum PickleOp : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneOp = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOp = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kTupleOp = 't',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kSetItems = 'u',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

using Kind = PickleValue::Kind;

/// Executes one operation after the other.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& file) : cursor_(bytes, file) {}

  Pickle run() {
    while (true) {
      const uint8_t op = cursor_.byte();
      if (op == kStop) return stack_.finish(cursor_.place());
      step(op);
    }
  }

 private:
  void step(uint8_t op) {
    if (op == kProto) {
      cursor_.byte();
    } else if (op == kFrame) {
      cursor_.take(8);
    } else if (!scalar(op) && !container(op) && !filling(op) && !keeping(op) && !object(op)) {
      cursor_.back();
      cursor_.corrupt(
          fmt::format("has operation 0x{:02x}, which is not one that weights need,", op));
    }
  }

  bool scalar(uint8_t op) {
    switch (op) {
      case kNoneOp:
        stack_.push({Kind::kNone, 0, {}, {}});
        return true;
      case kNewTrue:
      case kNewFalse:
        stack_.push({Kind::kBool, op == kNewTrue ? 1 : 0, {}, {}});
        return true;
      case kBinInt:
        stack_.push_int(static_cast<int32_t>(cursor_.number(4)));
        return true;
      case kBinInt1:
        stack_.push_int(static_cast<int64_t>(cursor_.number(1)));
        return true;
      case kBinInt2:
        stack_.push_int(static_cast<int64_t>(cursor_.number(2)));
        return true;
      case kLong1:
        push_long(cursor_.byte());
        return true;
      case kBinFloat:
        cursor_.take(8);
        stack_.push({});
        return true;
      case kShortBinString:
      case kShortBinUnicode:
      case kShortBinBytes:
        push_text(cursor_.number(1));
        return true;
      case kBinString:
      case kBinUnicode:
      case kBinBytes:
        push_text(cursor_.number(4));
        return true;
      case kBinUnicode8:
      case kBinBytes8:
        push_text(cursor_.number(8));
        return true;
      default:
        return false;
    }
  }

  bool container(uint8_t op) {
    switch (op) {
      case kEmptyList:
        stack_.push({Kind::kList, 0, {}, {}});
        return true;
      case kEmptyDict:
        stack_.push({Kind::kDict, 0, {}, {}});
        return true;
      case kEmptyTuple:
        stack_.push({Kind::kTuple, 0, {}, {}});
        return true;
      case kEmptySet:
        stack_.push({});
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        stack_.push({Kind::kTuple, 0, {}, stack_.pop_count(op - kTuple1 + size_t{1})});
        return true;
      case kTupleOp:
        stack_.push({Kind::kTuple, 0, {}, stack_.pop_mark()});
        return true;
      default:
        return false;
    }
  }

  /// Puts values of the stack into a container below them.
  bool filling(uint8_t op) {
    switch (op) {
      case kAppend:
        stack_.add(stack_.pop_count(1), Kind::kList);
        return true;
      case kAppends:
        stack_.add(stack_.pop_mark(), Kind::kList);
        return true;
      case kSetItem:
        stack_.add(stack_.pop_count(2), Kind::kDict);
        return true;
      case kSetItems:
        stack_.add(stack_.pop_mark(), Kind::kDict);
        return true;
      case kAddItems:
        stack_.pop_mark();
        return true;
      case kFrozenSet:
        stack_.pop_mark();
        stack_.push({});
        return true;
      default:
        return false;
    }
  }

  /// Operations on marks and stored values.
  bool keeping(uint8_t op) {
    switch (op) {
      case kMark:
        stack_.mark();
        return true;
      case kPop:
        stack_.pop();
        return true;
      case kPopMark:
        stack_.pop_mark();
        return true;
      case kBinPut:
        stack_.put(cursor_.number(1));
        return true;
      case kLongBinPut:
        stack_.put(cursor_.number(4));
        return true;
      case kMemoize:
        stack_.put(stack_.num_kept());
        return true;
      case kBinGet:
        stack_.get(cursor_.number(1));
        return true;
      case kLongBinGet:
        stack_.get(cursor_.number(4));
        return true;
      default:
        return false;
    }
  }

  bool object(uint8_t op) {
    switch (op) {
      case kGlobalOp: {
        std::string name = cursor_.line();
        name += ' ' + cursor_.line();
        stack_.push({Kind::kGlobal, 0, std::move(name), {}});
        return true;
      }
      case kStackGlobal: {
        const auto names = stack_.pop_count(2);
        stack_.push(
            {Kind::kGlobal, 0, stack_.name_of(names[0]) + ' ' + stack_.name_of(names[1]), {}});
        return true;
      }
      case kReduce: {
        const auto operands = stack_.pop_count(2);
        stack_.call(operands[0], operands[1]);
        return true;
      }
      case kNewObj:
        stack_.pop_count(2);
        stack_.push({});
        return true;
      case kNewObjEx:
        stack_.pop_count(3);
        stack_.push({});
        return true;
      case kBuild:
        stack_.pop();
        stack_.top();
        return true;  // the state of an object
      case kBinPersId:
        stack_.push({Kind::kPersistent, 0, {}, stack_.pop_count(1)});
        return true;
      default:
        return false;
    }
  }

  void push_text(uint64_t count) {
    stack_.push({Kind::kText, 0, std::string(cursor_.take(count)), {}});
  }

  void push_long(uint64_t count) {
    if (count > 8) {  // not a number of a tensor
      cursor_.take(count);
      stack_.push({});
      return;
    }
    uint64_t value = cursor_.number(count);
    const bool negative = count > 0 && (value >> (8 * count - 1) & 1) != 0;
    if (negative && count < 8) value |= ~uint64_t{0} << (8 * count);
    stack_.push_int(static_cast<int64_t>(value));
  }

  PickleCursor cursor_;
  PickleStack stack_{cursor_};
};

}  // namespace

Pickle read_pickle(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxPickleBytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: its pickle has {} bytes, at most {} are read",
                                                 file, bytes.size(), kMaxPickleBytes));
  }
  return PickleReader(bytes, file).run();
}

}  // namespace lockstep::inline internal
