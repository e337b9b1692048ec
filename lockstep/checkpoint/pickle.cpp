#include "lockstep/checkpoint/pickle.h"

#include <fmt/format.h>

#include <unordered_map>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using Kind = PickleValue::Kind;

// Operations, by the letters of Python's pickletools.
enum Op : uint8_t {
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

constexpr size_t kMaxValues = 2'000'000;

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Pickle run() {
    while (true) {
      const uint8_t op = byte();
      if (op == kStop) break;
      step(op);
    }
    pickle_.top = pop();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: not a readable .pth file: its pickle {} at byte {}", file_, what, at_));
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) corrupt("is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  /// Little-endian.
  uint64_t number(size_t count) {
    const std::string_view taken = take(count);
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) corrupt("is cut off");
    std::string text(take(end - at_));
    ++at_;
    return text;
  }

  uint32_t make(PickleValue value) {
    if (pickle_.values.size() >= kMaxValues) corrupt("has too many values");
    pickle_.values.push_back(std::move(value));
    return static_cast<uint32_t>(pickle_.values.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(make(std::move(value))); }
  void push_int(int64_t value) { push({Kind::kInt, value, {}, {}}); }
  void push_text(uint64_t count) { push({Kind::kText, 0, std::string(take(count)), {}}); }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t pop() {
    if (stack_.size() <= floor()) corrupt("takes a value that is not there");
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue& top() {
    if (stack_.size() <= floor()) corrupt("takes a value that is not there");
    return pickle_.values[stack_.back()];
  }
  std::vector<uint32_t> pop_count(size_t count) {
    if (stack_.size() - floor() < count) corrupt("takes a value that is not there");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return items;
  }
  std::vector<uint32_t> pop_mark() {
    if (marks_.empty()) corrupt("takes a mark that is not there");
    const size_t from = marks_.back();
    std::vector<uint32_t> items = pop_count(stack_.size() - from);
    marks_.pop_back();
    return items;
  }

  const std::string& text_of(uint32_t value) const { return pickle_.values[value].text; }

  void put(uint64_t key) {
    top();  // checks that there is one
    memo_[key] = stack_.back();
  }
  void get(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) corrupt("asks for a value that it has not kept");
    stack_.push_back(found->second);
  }

  /// Appends to the list or dict on top; in others (objects that fill themselves) they are dropped.
  void add(const std::vector<uint32_t>& items, Kind kind) {
    PickleValue& target = top();
    if (kind == Kind::kDict && items.size() % 2 != 0) corrupt("has a key without a value");
    if (target.kind == kind) target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void call(uint32_t callee, uint32_t arguments) {
    const PickleValue& function = pickle_.values[callee];
    if (function.kind == Kind::kGlobal && function.text == "collections OrderedDict" &&
        pickle_.values[arguments].items.empty()) {
      push({Kind::kDict, 0, {}, {}});
    } else {
      push({Kind::kCall, 0, {}, {callee, arguments}});
    }
  }

  void push_long(uint64_t count) {
    if (count > 8) {  // none of a tensor's numbers
      take(count);
      push({});
      return;
    }
    uint64_t value = number(count);
    const bool negative = count > 0 && (value >> (8 * count - 1) & 1) != 0;
    if (negative && count < 8) value |= ~uint64_t{0} << (8 * count);
    push_int(static_cast<int64_t>(value));
  }

  void step(uint8_t op) {
    if (op == kProto) {
      byte();
    } else if (op == kFrame) {
      take(8);
    } else if (!scalar(op) && !container(op) && !object(op)) {
      --at_;
      corrupt(fmt::format("has operation 0x{:02x}, which is not one that weights need,", op));
    }
  }

  bool scalar(uint8_t op) {
    switch (op) {
      case kNoneOp:
        push({Kind::kNone, 0, {}, {}});
        return true;
      case kNewTrue:
      case kNewFalse:
        push({Kind::kBool, op == kNewTrue ? 1 : 0, {}, {}});
        return true;
      case kBinInt:
        push_int(static_cast<int32_t>(number(4)));
        return true;
      case kBinInt1:
        push_int(static_cast<int64_t>(number(1)));
        return true;
      case kBinInt2:
        push_int(static_cast<int64_t>(number(2)));
        return true;
      case kLong1:
        push_long(byte());
        return true;
      case kBinFloat:
        take(8);
        push({});
        return true;
      case kShortBinString:
      case kShortBinUnicode:
      case kShortBinBytes:
        push_text(number(1));
        return true;
      case kBinString:
      case kBinUnicode:
      case kBinBytes:
        push_text(number(4));
        return true;
      case kBinUnicode8:
      case kBinBytes8:
        push_text(number(8));
        return true;
      default:
        return false;
    }
  }

  bool container(uint8_t op) {
    switch (op) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kPop:
        pop();
        return true;
      case kPopMark:
        pop_mark();
        return true;
      case kEmptyList:
        push({Kind::kList, 0, {}, {}});
        return true;
      case kEmptyDict:
        push({Kind::kDict, 0, {}, {}});
        return true;
      case kEmptyTuple:
        push({Kind::kTuple, 0, {}, {}});
        return true;
      case kEmptySet:
        push({});
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push({Kind::kTuple, 0, {}, pop_count(op - kTuple1 + size_t{1})});
        return true;
      case kTupleOp:
        push({Kind::kTuple, 0, {}, pop_mark()});
        return true;
      case kAppend:
        add(pop_count(1), Kind::kList);
        return true;
      case kAppends:
        add(pop_mark(), Kind::kList);
        return true;
      case kSetItem:
        add(pop_count(2), Kind::kDict);
        return true;
      case kSetItems:
        add(pop_mark(), Kind::kDict);
        return true;
      case kAddItems:
        pop_mark();
        return true;
      case kFrozenSet:
        pop_mark();
        push({});
        return true;
      case kBinPut:
        put(number(1));
        return true;
      case kLongBinPut:
        put(number(4));
        return true;
      case kMemoize:
        put(memo_.size());
        return true;
      case kBinGet:
        get(number(1));
        return true;
      case kLongBinGet:
        get(number(4));
        return true;
      default:
        return false;
    }
  }

  bool object(uint8_t op) {
    switch (op) {
      case kGlobalOp: {
        std::string name = line();
        name += ' ' + line();
        push({Kind::kGlobal, 0, std::move(name), {}});
        return true;
      }
      case kStackGlobal: {
        const auto names = pop_count(2);
        push({Kind::kGlobal, 0, text_of(names[0]) + ' ' + text_of(names[1]), {}});
        return true;
      }
      case kReduce: {
        const auto operands = pop_count(2);
        call(operands[0], operands[1]);
        return true;
      }
      case kNewObj:
        pop_count(2);
        push({});
        return true;
      case kNewObjEx:
        pop_count(3);
        push({});
        return true;
      case kBuild:
        pop();
        top();
        return true;  // an object's state
      case kBinPersId:
        push({Kind::kPersistent, 0, {}, pop_count(1)});
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

}  // namespace

Pickle read_pickle(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxPickleBytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: its pickle has {} bytes, at most {} are read",
                                                 file, bytes.size(), kMaxPickleBytes));
  }
  return Reader(bytes, file).run();
}

}  // namespace lockstep
