#include "lockstep/checkpoint/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep {
namespace {

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
  if (method != 0 || (flags & 1) != 0 || packed != bytes) {
    corrupt_zip(file, "a member is compressed or encrypted; torch.save does neither");
  }
  const std::string head = file.read(local, kLocalBytes);
  if (!head.starts_with("PK\x03\x04")) corrupt_zip(file, "a member does not begin where it should");
  member.offset = local + kLocalBytes + number(head, 26, 2) + number(head, 28, 2);
  member.bytes = bytes;
  if (member.offset > file.size() || bytes > file.size() - member.offset) {
    corrupt_zip(file, "a member ends behind the file; it was cut off");
  }
  return member;
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteSource& file) {
  const Directory place = find_directory(file);
  if (place.bytes > kMaxDirectory) corrupt_zip(file, "its directory is too long");
  const std::string directory = file.read(place.offset, place.bytes);
  std::vector<ZipMember> members;
  for (size_t at = 0; at < directory.size();) members.push_back(read_entry(file, directory, at));
  return members;
}

}  // namespace lockstep
