#include "lockstep/checkpoint/pytorch_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/crc32.h"
#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/pickle.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// A member of a zip archive.
struct ZipMember {
  std::string name;
  uint64_t offset = 0;  ///< Of its bytes in the file.
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  ///< 0: not computed, as after torch.serialization.set_crc32_options(False).
  bool is_plain = true;  ///< Neither compressed nor encrypted.
};

constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocatorBytes = 20;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kMaxDirectory = uint64_t{64} << 20;

[[noreturn]] void corrupt_zip(const ByteSource& file, const std::string& what) {
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}: not a readable .pth file: {}", file.name(), what));
}

/// Little-endian; the caller has checked that the bytes exist.
uint64_t number(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

struct Directory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

Directory find_directory(const ByteSource& file) {
  const uint64_t tail_bytes = std::min<uint64_t>(file.size(), 65535 + kEndBytes);
  const uint64_t tail_at = file.size() - tail_bytes;
  const std::string tail = file.read(tail_at, tail_bytes);
  const size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndBytes) {
    corrupt_zip(file, "the archive has no end; it was cut off");
  }
  Directory directory{number(tail, end + 16, 4), number(tail, end + 12, 4)};
  if (directory.offset != 0xffffffff && directory.bytes != 0xffffffff) return directory;
  const uint64_t end_at = tail_at + end;
  if (end_at < kLocatorBytes) corrupt_zip(file, "no place for a zip64 locator");
  const std::string locator = file.read(end_at - kLocatorBytes, kLocatorBytes);
  if (!locator.starts_with("PK\x06\x07")) corrupt_zip(file, "the zip64 locator is missing");
  const std::string end64 = file.read(number(locator, 8, 8), kEnd64Bytes);
  if (!end64.starts_with("PK\x06\x06")) corrupt_zip(file, "the zip64 end is missing");
  return {number(end64, 48, 8), number(end64, 40, 8)};
}

/// Reads sizes and offset that do not fit 32 bits, in this order, from the extra field.
void widen(const ByteSource& file, std::string_view extra, std::vector<uint64_t*> fields) {
  fields.erase(std::remove_if(fields.begin(), fields.end(),
                              [](const uint64_t* field) { return *field != 0xffffffff; }),
               fields.end());
  if (fields.empty()) return;
  for (size_t at = 0; extra.size() - at >= 4;) {
    const uint64_t bytes = number(extra, at + 2, 2);
    if (bytes > extra.size() - at - 4) break;
    if (number(extra, at, 2) == 1 && bytes >= 8 * fields.size()) {
      for (size_t i = 0; i < fields.size(); ++i) *fields[i] = number(extra, at + 4 + 8 * i, 8);
      return;
    }
    at += 4 + bytes;
  }
  corrupt_zip(file, "a member's 64-bit sizes are missing");
}

/// Reads the entry at `at` and advances behind it.
ZipMember read_entry(const ByteSource& file, std::string_view directory, size_t& at) {
  if (directory.size() - at < kEntryBytes || directory.substr(at, 4) != "PK\x01\x02") {
    corrupt_zip(file, "its directory is broken");
  }
  const uint64_t flags = number(directory, at + 8, 2), method = number(directory, at + 10, 2);
  const uint64_t crc = number(directory, at + 16, 4);
  uint64_t packed = number(directory, at + 20, 4), bytes = number(directory, at + 24, 4);
  const uint64_t name = number(directory, at + 28, 2), extra = number(directory, at + 30, 2);
  const uint64_t comment = number(directory, at + 32, 2);
  uint64_t local = number(directory, at + 42, 4);
  if (directory.size() - at < kEntryBytes + name + extra + comment) {
    corrupt_zip(file, "its directory is cut off");
  }
  ZipMember member;
  member.name = directory.substr(at + kEntryBytes, name);
  widen(file, directory.substr(at + kEntryBytes + name, extra), {&bytes, &packed, &local});
  at += kEntryBytes + name + extra + comment;
  member.is_plain = method == 0 && (flags & 1) == 0 && packed == bytes;
  const std::string head = file.read(local, kLocalBytes);
  if (!head.starts_with("PK\x03\x04")) corrupt_zip(file, "a member does not begin where it should");
  member.offset = local + kLocalBytes + number(head, 26, 2) + number(head, 28, 2);
  member.bytes = packed;
  member.crc32 = static_cast<uint32_t>(crc);
  if (member.offset > file.size() || packed > file.size() - member.offset) {
    corrupt_zip(file, "a member ends behind the file; it was cut off");
  }
  return member;
}

/// The members of an archive (zip64 too); each lies within the file. Memory: in proportion to the
/// directory, which has at most 64 MiB. Errors: kCorrupt, which names the file and the reason.
/// Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
std::vector<ZipMember> read_zip_directory(const ByteSource& file) {
  const Directory place = find_directory(file);
  if (place.bytes > kMaxDirectory) corrupt_zip(file, "its directory is too long");
  const std::string directory = file.read(place.offset, place.bytes);
  std::vector<ZipMember> members;
  for (size_t at = 0; at < directory.size();) members.push_back(read_entry(file, directory, at));
  return members;
}

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

bool is_torch_script(const std::vector<ZipMember>& members) {
  return std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
    return ends_with_path(member.name, "/constants.pkl") ||
           member.name.find("/code/") != std::string::npos;
  });
}

WeightTable parse_archive(const ByteSource& file, const CountWanted& count_wanted) {
  std::optional<ZipMember> description;
  Storages storages;
  const std::vector<ZipMember> members = read_zip_directory(file);
  if (is_torch_script(members)) {
    refuse_pth(file,
               "is TorchScript, not a state_dict; in Python: "
               "torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)");
  }
  for (const ZipMember& member : members) {
    if (!member.is_plain) {
      corrupt_zip(file, "a member is compressed or encrypted; torch.save does neither");
    }
    const size_t key = member.name.rfind("/data/");
    if (ends_with_path(member.name, "/data.pkl")) {
      description = member;
    } else if (ends_with_path(member.name, "/byteorder") && member.bytes < 100) {
      if (file.read(member.offset, member.bytes) != "little") {
        refuse_pth(file, "its numbers are not little-endian");
      }
    } else if (key != std::string::npos) {
      storages.emplace(member.name.substr(key + 6),
                       SummedBytes{member.offset, member.bytes, member.crc32});
    }
  }
  if (!description) refuse_pth(file, "a zip archive, but no .pth");
  if (description->bytes > kMaxPickleBytes) description->bytes = kMaxPickleBytes + 1;
  const std::string bytes = file.read(description->offset, description->bytes);
  const bool whole = bytes.size() <= kMaxPickleBytes;
  if (whole && description->crc32 != 0 && crc32_of(bytes) != description->crc32) {
    corrupt_zip(file, "the bytes of its pickle are not those saved (CRC-32 differs)");
  }
  const Pickle pickle = read_pickle(bytes, file.name());
  return read_state_dict(file, pickle, storages, count_wanted);
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
                            const std::map<std::string, uint64_t>& widths) {
  Storages storages;
  for (const uint32_t index : keys.values[keys.top].items) {
    const std::string& key = keys.values[index].text;
    const auto width = widths.find(key);
    if (width == widths.end()) refuse_pth(file, "a storage has an unknown element type");
    if (file.size() - at < 8) refuse_pth(file, "it was cut off before a storage");
    const std::string count = file.read(at, 8);
    uint64_t elements = 0;
    for (size_t i = 8; i-- > 0;) elements = elements << 8 | static_cast<uint8_t>(count[i]);
    at += 8;
    const uint64_t one = width->second;
    if (elements > (file.size() - at) / one) refuse_pth(file, "it was cut off within a storage");
    storages.emplace(key, SummedBytes{at, elements * one, 0});
    at += elements * one;
  }
  return storages;
}

WeightTable parse_old(const ByteSource& file, const CountWanted& count_wanted) {
  uint64_t at = 0;
  next_pickle(file, at);  // the magic number
  check_old_version(file, next_pickle(file, at));
  check_old_machine(file, next_pickle(file, at));
  const Pickle state = next_pickle(file, at, kMaxPickleBytes);
  const Pickle keys = next_pickle(file, at, kMaxPickleBytes);
  const Storages storages = place_old_storages(file, at, keys, storage_widths(state));
  return read_state_dict(file, state, storages, count_wanted);
}

}  // namespace

bool is_old_pytorch(std::string_view start) {
  constexpr size_t kLastPlace = 11;  // behind the protocol, and a frame of protocol 4
  return start.starts_with('\x80') && start.find(kOldMagic) <= kLastPlace;
}

WeightTable parse_pytorch(const ByteSource& file, const CountWanted& count_wanted) {
  const std::string start = file.read(0, std::min(kOldPyTorchStart, file.size()));
  return is_old_pytorch(start) ? parse_old(file, count_wanted) : parse_archive(file, count_wanted);
}

}  // namespace lockstep::inline internal
