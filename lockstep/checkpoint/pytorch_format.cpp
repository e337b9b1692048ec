#include "lockstep/checkpoint/pytorch_format.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lockstep/checkpoint/pickle.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/checkpoint/zip_directory.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

// The format before 1.6 begins with this number, pickled: ten bytes of a long.
constexpr auto kOldMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr int64_t kOldVersion = 1001;
constexpr uint64_t kSmallPickle = 1 << 16;

[[noreturn]] void refuse_pth(const ByteSource& file, const std::string& what) {
  throw Error(ErrorCode::kCorrupt, file.name() + ": " + what);
}

bool ends_with_path(const std::string& name, std::string_view end) {
  return name.size() > end.size() && std::string_view(name).ends_with(end);
}

WeightTable parse_archive(const ByteSource& file) {
  std::optional<ZipMember> description;
  Storages storages;
  for (ZipMember& member : read_zip_directory(file)) {
    const size_t key = member.name.rfind("/data/");
    if (ends_with_path(member.name, "/data.pkl")) {
      description = member;
    } else if (ends_with_path(member.name, "/byteorder") && member.bytes < 100) {
      if (file.read(member.offset, member.bytes) != "little") {
        refuse_pth(file, "its numbers are not little-endian");
      }
    } else if (key != std::string::npos) {
      storages.emplace(member.name.substr(key + 6), StoredBytes{member.offset, member.bytes});
    }
  }
  if (!description) refuse_pth(file, "a zip archive, but no .pth");
  if (description->bytes > kMaxPickleBytes) description->bytes = kMaxPickleBytes + 1;
  const Pickle pickle =
      read_pickle(file.read(description->offset, description->bytes), file.name());
  return read_state_dict(file, pickle, storages);
}

/// The pickle at `at`, which advances behind it.
Pickle next_pickle(const ByteSource& file, uint64_t& at, uint64_t most = kSmallPickle) {
  Pickle pickle = read_pickle(file.read(at, std::min(most, file.size() - at)), file.name());
  at += pickle.bytes;
  return pickle;
}

void check_old_version(const ByteSource& file, const Pickle& pickle) {
  const PickleValue& version = pickle.values[pickle.top];
  if (version.kind == PickleValue::Kind::kInt && version.number == kOldVersion) return;
  refuse_pth(file, "an unknown version of PyTorch's format before 1.6");
}

/// The machine that wrote the file is a dict with the key "little_endian".
void check_old_machine(const ByteSource& file, const Pickle& pickle) {
  const std::vector<uint32_t>& items = pickle.values[pickle.top].items;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (pickle.values[items[i]].text != "little_endian") continue;
    if (pickle.values[items[i + 1]].number == 1) return;
  }
  refuse_pth(file, "its numbers are not little-endian");
}

/// Behind the pickles each storage has its number of elements, and their bytes.
Storages place_old_storages(const ByteSource& file, uint64_t at, const Pickle& keys,
                            const std::map<std::string, StoredType>& types) {
  Storages storages;
  for (const uint32_t index : keys.values[keys.top].items) {
    const std::string& key = keys.values[index].text;
    const auto type = types.find(key);
    if (type == types.end()) refuse_pth(file, "a storage has an unknown element type");
    if (file.size() - at < 8) refuse_pth(file, "it was cut off before a storage");
    const std::string count = file.read(at, 8);
    uint64_t elements = 0;
    for (size_t i = 8; i-- > 0;) elements = elements << 8 | static_cast<uint8_t>(count[i]);
    at += 8;
    const auto one = static_cast<uint64_t>(bits(type->second) / 8);
    if (elements > (file.size() - at) / one) refuse_pth(file, "it was cut off within a storage");
    storages.emplace(key, StoredBytes{at, elements * one});
    at += elements * one;
  }
  return storages;
}

WeightTable parse_old(const ByteSource& file) {
  uint64_t at = 0;
  next_pickle(file, at);  // the magic number
  check_old_version(file, next_pickle(file, at));
  check_old_machine(file, next_pickle(file, at));
  const Pickle state = next_pickle(file, at, kMaxPickleBytes);
  const Pickle keys = next_pickle(file, at, kMaxPickleBytes);
  return read_state_dict(file, state, place_old_storages(file, at, keys, storage_types(state)));
}

}  // namespace

bool is_old_pytorch(std::string_view start) {
  constexpr size_t kLastPlace = 11;  // behind the protocol, and a frame of protocol 4
  return start.starts_with('\x80') && start.find(kOldMagic) <= kLastPlace;
}

WeightTable parse_pytorch(const ByteSource& file) {
  const std::string start = file.read(0, std::min(kOldPyTorchStart, file.size()));
  return is_old_pytorch(start) ? parse_old(file) : parse_archive(file);
}

}  // namespace lockstep
