#include "lockstep/checkpoint/state_dict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kQuantized = "is quantized, which is not read";
constexpr std::string_view kSparse = "is sparse, which is not read";
constexpr std::string_view kComplexDouble = "is complex, of two doubles, which is not read";
constexpr std::string_view kUnusual = "is of a kind that is not read";

struct StorageType {
  std::string_view name;
  uint64_t bytes;  ///< Of an element.
  std::optional<StoredType> type;
  std::string_view unread{};  ///< Without a type, the reason.
};

constexpr std::array<StorageType, 15> kStorageTypes = {{
    {"torch FloatStorage", 4, StoredType::kF32},
    {"torch HalfStorage", 2, StoredType::kF16},
    {"torch BFloat16Storage", 2, StoredType::kBf16},
    {"torch DoubleStorage", 8, StoredType::kF64},
    {"torch LongStorage", 8, StoredType::kI64},
    {"torch IntStorage", 4, StoredType::kI32},
    {"torch ShortStorage", 2, StoredType::kI16},
    {"torch CharStorage", 1, StoredType::kI8},
    {"torch ByteStorage", 1, StoredType::kU8},
    {"torch BoolStorage", 1, StoredType::kBool},
    {"torch ComplexFloatStorage", 8, StoredType::kC64},
    {"torch ComplexDoubleStorage", 16, std::nullopt, kComplexDouble},
    {"torch QInt8Storage", 1, std::nullopt, kQuantized},
    {"torch QUInt8Storage", 1, std::nullopt, kQuantized},
    {"torch QInt32Storage", 4, std::nullopt, kQuantized},
}};

auto find_type(std::string_view storage_class) {
  return std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                      [&](const StorageType& each) { return each.name == storage_class; });
}

// Their order is that of choice, behind the top dict.
constexpr std::array<std::string_view, 11> kStateKeys = {
    "state_dict", "model_state_dict", "model",          "net", "network", "params", "weights",
    "model_ema",  "state_dict_ema",   "ema_state_dict", "ema"};

// Dicts of tensors lie near the top; an optimizer's state has many more.
constexpr size_t kMostDepth = 3;
constexpr size_t kMostDicts = 10'000;
constexpr size_t kMostCandidates = 64;
constexpr size_t kLongestKey = 200;

constexpr size_t kMostDims = 64;
// Tensors may share a storage (tied weights do), but not so often that memory runs out.
constexpr uint64_t kMostShares = 8;

/// Turns the pickle's description into places in the file.
class StateDict {
 public:
  StateDict(const ByteSource& file, const Pickle& pickle, const Storages& storages)
      : file_(file), pickle_(pickle), storages_(storages) {}

  WeightTable read(const CountWanted& count_wanted) {
    const PickleValue& top = at(pickle_.top);
    if (top.kind != Kind::kDict) {
      corrupt(
          "holds a whole module or another object, not a state_dict; in Python: "
          "torch.save(model.state_dict(), NEW_FILE)");
    }
    const std::vector<NamedDict> dicts = dicts_of_tensors();
    WeightTable table;
    if (dicts.empty()) corrupt("holds no tensors by name");
    const PickleValue& state = choose(dicts, count_wanted, table);
    std::unordered_set<std::string> names;
    uint64_t bytes = 0;
    for (size_t i = 0; i + 1 < state.items.size(); i += 2) {
      const PickleValue& key = at(state.items[i]);
      const PickleValue& value = at(state.items[i + 1]);
      if (key.kind != Kind::kText || !is_tensor(value)) continue;
      if (!names.insert(key.text).second) corrupt_tensor(key.text, "is there twice");
      table.weights.push_back(weight(key.text, value));
      for (const WeightPiece& piece : table.weights.back().pieces) bytes += piece.bytes;
      if (bytes / kMostShares > file_.size()) corrupt("its tensors share their bytes too often");
    }
    return table;
  }

 private:
  using Arguments = std::vector<uint32_t>;

  struct NamedDict {
    std::string path;  ///< "weights.inner"; empty: the top one.
    uint32_t index = 0;
    size_t depth = 0;
    size_t num_tensors = 0;
  };

  /// All dicts with tensors of a name, in the order of choice.
  std::vector<NamedDict> dicts_of_tensors() const {
    std::vector<NamedDict> all = {{"", pickle_.top, 0, 0}};
    std::unordered_set<uint32_t> seen = {pickle_.top};
    for (size_t next = 0; next < all.size(); ++next) {
      const PickleValue& dict = at(all[next].index);
      for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
        const PickleValue& key = at(dict.items[i]);
        const uint32_t value = dict.items[i + 1];
        if (key.kind != Kind::kText) continue;
        if (is_tensor(at(value))) ++all[next].num_tensors;
        const bool near = all[next].depth < kMostDepth && all.size() < kMostDicts;
        if (!near || at(value).kind != Kind::kDict || key.text.size() > kLongestKey) continue;
        if (!seen.insert(value).second) continue;
        const std::string& above = all[next].path;
        all.push_back(
            {above.empty() ? key.text : above + "." + key.text, value, all[next].depth + 1, 0});
      }
    }
    std::erase_if(all, [](const NamedDict& one) { return one.num_tensors == 0; });
    std::stable_sort(all.begin(), all.end(), [](const NamedDict& a, const NamedDict& b) {
      return place_of(a.path) < place_of(b.path);
    });
    if (all.size() > kMostCandidates) all.resize(kMostCandidates);
    return all;
  }

  /// Its tensors. A text that many entries share is copied once.
  std::vector<NamedShape> tensors_in_dict(const NamedDict& named) const {
    const PickleValue& dict = at(named.index);
    std::unordered_set<uint32_t> seen;
    std::vector<NamedShape> tensors;
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const uint32_t key = dict.items[i];
      const PickleValue& value = at(dict.items[i + 1]);
      if (at(key).kind != Kind::kText || !is_tensor(value)) continue;
      if (seen.insert(key).second) tensors.push_back({at(key).text, shape_if_known(value)});
    }
    return tensors;
  }

  /// Empty, too, for a description that weight() would refuse.
  std::vector<uint64_t> shape_if_known(const PickleValue& tensor) const {
    const Arguments* call = tensor_call(tensor);
    if (call == nullptr || call->size() < 3) return {};
    const PickleValue& sizes = at((*call)[2]);
    if (sizes.kind != Kind::kTuple || sizes.items.size() > kMostDims) return {};
    std::vector<uint64_t> shape;
    for (const uint32_t item : sizes.items) {
      if (at(item).kind != Kind::kInt || at(item).number < 0) return {};
      shape.push_back(static_cast<uint64_t>(at(item).number));
    }
    return shape;
  }

  static size_t place_of(const std::string& path) {
    if (path.empty()) return 0;
    const auto found = std::find(kStateKeys.begin(), kStateKeys.end(), path);
    const bool of_optimizer = path.starts_with("opt");
    return 1 + static_cast<size_t>(found - kStateKeys.begin()) + (of_optimizer ? 1 : 0);
  }

  /// See parse_pytorch(). Sets the names of dicts in `table`.
  const PickleValue& choose(const std::vector<NamedDict>& dicts, const CountWanted& count_wanted,
                            WeightTable& table) const {
    std::vector<size_t> counts(dicts.size());
    for (size_t i = 0; count_wanted && dicts.size() > 1 && i < dicts.size(); ++i) {
      counts[i] = count_wanted(tensors_in_dict(dicts[i]));
    }
    if (std::all_of(counts.begin(), counts.end(), [](size_t count) { return count == 0; })) {
      for (size_t i = 0; i < dicts.size(); ++i) counts[i] = dicts[i].num_tensors;
    }
    const auto most = std::max_element(counts.begin(), counts.end());  // the first of equal ones
    const auto best = static_cast<size_t>(most - counts.begin());
    table.dict = dicts[best].path;
    for (size_t i = 0; i < dicts.size(); ++i) {
      if (i != best && !dicts[i].path.empty() && counts[i] > 0) {
        table.other_dicts.push_back(dicts[i].path);
      }
    }
    return at(dicts[best].index);
  }

  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(ErrorCode::kCorrupt, file_.name() + ": " + what);
  }
  [[noreturn]] void corrupt_tensor(const std::string& name, const std::string& what) const {
    std::string shown = name.substr(0, 200);
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    corrupt(fmt::format("tensor '{}' {}", shown, what));
  }

  const PickleValue& at(uint32_t index) const { return pickle_.values[index]; }

  /// The call that makes a tensor: that within _rebuild_parameter, where there is one.
  const PickleValue& inner_call(const PickleValue& value) const {
    if (!is_call(value, "torch._utils _rebuild_parameter") &&
        !is_call(value, "torch._utils _rebuild_parameter_with_state")) {
      return value;
    }
    const PickleValue& arguments = at(value.items[1]);
    return arguments.items.empty() ? value : at(arguments.items[0]);
  }

  /// Arguments of _rebuild_tensor_v2; before 0.4 there was a first version, with the same four.
  const Arguments* tensor_call(const PickleValue& value) const {
    const PickleValue& call = inner_call(value);
    if (!is_call(call, "torch._utils _rebuild_tensor_v2") &&
        !is_call(call, "torch._utils _rebuild_tensor")) {
      return nullptr;
    }
    return &at(call.items[1]).items;
  }

  /// The reason why a tensor of another kind is not read; empty for other values.
  std::string_view other_kind(const PickleValue& value) const {
    const PickleValue& call = inner_call(value);
    if (is_call(call, "torch._utils _rebuild_qtensor")) return kQuantized;
    if (is_call(call, "torch._utils _rebuild_sparse_tensor") ||
        is_call(call, "torch._utils _rebuild_sparse_csr_tensor")) {
      return kSparse;
    }
    const bool calls = call.kind == Kind::kCall && at(call.items[0]).kind == Kind::kGlobal;
    const bool rebuilds = calls && (at(call.items[0]).text.starts_with("torch._utils _rebuild_") ||
                                    at(call.items[0]).text.starts_with("torch._tensor _rebuild_"));
    return rebuilds && tensor_call(value) == nullptr ? kUnusual : std::string_view();
  }

  bool is_tensor(const PickleValue& value) const {
    return tensor_call(value) != nullptr || !other_kind(value).empty();
  }

  bool is_call(const PickleValue& value, std::string_view function) const {
    return value.kind == Kind::kCall && at(value.items[0]).kind == Kind::kGlobal &&
           at(value.items[0]).text == function && at(value.items[1]).kind == Kind::kTuple;
  }

  uint64_t whole(const std::string& name, uint32_t index) const {
    const PickleValue& value = at(index);
    if (value.kind != Kind::kInt || value.number < 0) {
      corrupt_tensor(name, "has a size, stride or offset that is no whole number");
    }
    return static_cast<uint64_t>(value.number);
  }

  std::vector<uint64_t> numbers(const std::string& name, uint32_t index) const {
    if (at(index).kind != Kind::kTuple || at(index).items.size() > kMostDims) {
      corrupt_tensor(name, "has no list of sizes and strides");
    }
    std::vector<uint64_t> values;
    for (const uint32_t item : at(index).items) values.push_back(whole(name, item));
    return values;
  }

  StoredWeight weight(const std::string& name, const PickleValue& value) const {
    StoredWeight weight;
    weight.name = name;
    const Arguments* call = tensor_call(value);
    if (call == nullptr) {
      weight.unread = other_kind(value);
      return weight;
    }
    const Arguments& arguments = *call;
    if (arguments.size() < 4) corrupt_tensor(name, "is not described");
    const std::vector<uint32_t>& id = storage_id(name, arguments[0]);
    const auto row = find_type(at(id[1]).text);
    if (row == kStorageTypes.end() || !row->type) {
      weight.unread = row == kStorageTypes.end() ? kUnusual : row->unread;
      return weight;
    }
    weight.type = *row->type;
    const SummedBytes& storage = find_storage(name, id);
    const uint64_t offset = whole(name, arguments[1]);
    weight.shape = numbers(name, arguments[2]);
    weight.strides = numbers(name, arguments[3]);
    if (weight.strides.size() != weight.shape.size()) {
      corrupt_tensor(name, "has other numbers of sizes and strides");
    }
    place(weight, storage, offset);
    return weight;
  }

  /// The persistent value ("storage", class, key, device, elements).
  const std::vector<uint32_t>& storage_id(const std::string& name, uint32_t index) const {
    const PickleValue& persistent = at(index);
    if (persistent.kind != Kind::kPersistent || at(persistent.items[0]).items.size() < 3) {
      corrupt_tensor(name, "has no storage");
    }
    return at(persistent.items[0]).items;
  }

  const SummedBytes& find_storage(const std::string& name, const std::vector<uint32_t>& id) const {
    if (id.size() > 5 && at(id[5]).kind == Kind::kTuple) {
      corrupt_tensor(name, "is a part of a storage, as PyTorch before 0.4 saved it");
    }
    const auto found = storages_.find(at(id[2]).text);
    if (found == storages_.end()) corrupt_tensor(name, "has no bytes in the file");
    return found->second;
  }

  /// The bytes of the storage that the tensor needs. They must exist, and must not be fewer than
  /// its elements.
  void place(StoredWeight& weight, const SummedBytes& storage, uint64_t offset) const {
    const auto one = static_cast<uint64_t>(bits(weight.type) / 8);
    const auto all = stored_bytes(weight.type, weight.shape);
    if (!all || *all > storage.bytes) corrupt_tensor(weight.name, "is larger than its storage");
    uint64_t last = 0;  // index of the last element, counted from the first
    for (size_t i = 0; i < weight.shape.size() && *all > 0; ++i) {
      uint64_t reach = 0;
      if (__builtin_mul_overflow(weight.shape[i] - 1, weight.strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        corrupt_tensor(weight.name, "reaches beyond its storage");
      }
    }
    const uint64_t elements = *all > 0 ? last + 1 : 0;
    const uint64_t held = storage.bytes / one;
    if (offset > held || elements > held - offset || elements * one < *all) {
      corrupt_tensor(weight.name, "reaches beyond its storage");
    }
    WeightPiece& piece = weight.pieces.emplace_back();
    piece.offset = storage.offset + offset * one;
    piece.bytes = elements * one;
    if (storage.crc32 != 0) piece.member = storage;
  }

  const ByteSource& file_;
  const Pickle& pickle_;
  const Storages& storages_;
};

}  // namespace

WeightTable read_state_dict(const ByteSource& file, const Pickle& pickle, const Storages& storages,
                            const CountWanted& count_wanted) {
  return StateDict(file, pickle, storages).read(count_wanted);
}

std::map<std::string, uint64_t> storage_widths(const Pickle& pickle) {
  std::map<std::string, uint64_t> widths;
  for (const PickleValue& value : pickle.values) {
    if (value.kind != Kind::kPersistent) continue;
    const std::vector<uint32_t>& id = pickle.values[value.items[0]].items;
    if (id.size() < 3) continue;
    const auto row = find_type(pickle.values[id[1]].text);
    if (row != kStorageTypes.end()) widths.emplace(pickle.values[id[2]].text, row->bytes);
  }
  return widths;
}

}  // namespace lockstep::inline internal
