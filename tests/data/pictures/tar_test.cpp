#include "lockstep/data/pictures/tar.h"

#include <algorithm>
#include <cstring>

#include "tests/data/pictures/tar_file.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// `claimed`: the archive's size, if it is only the beginning of a larger one.
TarBytes archive_of(const std::string& bytes, uint64_t claimed = 0) {
  const auto read = [&bytes](uint64_t at, char* to, size_t count) {
    if (at >= bytes.size()) return size_t{0};
    const size_t there = std::min(count, bytes.size() - static_cast<size_t>(at));
    std::memcpy(to, bytes.data() + at, there);
    return there;
  };
  return {std::max<uint64_t>(claimed, bytes.size()), read, "a.tar"};
}

std::vector<TarEntry> members_of(const std::string& bytes) {
  std::vector<TarEntry> members;
  for_each_tar_member(archive_of(bytes), [&](const TarMember& member) {
    members.push_back({member.name, bytes.substr(member.begin, member.bytes)});
    EXPECT_EQ(member.head, members.back().bytes.substr(0, 512));
  });
  return members;
}

void expect_members(const std::string& bytes, const std::vector<TarEntry>& expected) {
  const auto members = members_of(bytes);
  ASSERT_EQ(members.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(members[i].name, expected[i].name);
    EXPECT_EQ(members[i].bytes, expected[i].bytes);
  }
}

std::string tar_fault(const std::string& bytes, uint64_t claimed = 0) {
  const auto error =
      error_of([&] { for_each_tar_member(archive_of(bytes, claimed), [](const TarMember&) {}); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  return error.what();
}

/// Another value in a header, whose checksum is then set.
std::string with_field(std::string bytes, size_t at, const std::string& value) {
  bytes.replace(at, value.size(), value);
  const size_t header = at / 512 * 512;
  bytes.replace(header + 148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<uint8_t>(bytes[header + i]);
  char digits[9] = {};
  std::snprintf(digits, sizeof digits, "%06o", sum);
  return bytes.replace(header + 148, 7, std::string(digits, 7));
}

const std::vector<TarEntry> kMembers = {{"a.txt", "hello"},
                                        {"empty.cls", ""},
                                        {"folder/b.jpg", std::string(512, 'b')},
                                        {"c.png", std::string(2000, 'c')}};

TEST(Tar, EveryFormatGivesItsMembers) {
  for (const char* format : {"ustar", "pax", "gnutar", "v7tar"}) {
    SCOPED_TRACE(format);
    expect_members(tar_of(kMembers, format), kMembers);
  }
}

TEST(Tar, LongNamesAreWhole) {
  const std::string folder(90, 'f');
  const std::vector<TarEntry> medium = {{folder + "/" + std::string(60, 'm') + ".jpg", "1"},
                                        {"short.jpg", "2"}};
  const std::vector<TarEntry> large = {{folder + "/" + std::string(200, 'n') + ".jpg", "1"},
                                       {"short.jpg", "2"}};
  expect_members(tar_of(medium, "ustar"), medium);
  for (const char* format : {"pax", "gnutar"}) {
    SCOPED_TRACE(format);
    expect_members(tar_of(medium, format), medium);
    expect_members(tar_of(large, format), large);
  }
}

TEST(Tar, FoldersAndLinksArePassedOver) {
  const std::vector<TarEntry> all = {{"d/", "", AE_IFDIR}, {"d/l", "", AE_IFLNK}, {"d/x.cls", "3"}};
  for (const char* format : {"ustar", "pax", "gnutar"}) {
    SCOPED_TRACE(format);
    expect_members(tar_of(all, format), {{"d/x.cls", "3"}});
  }
}

TEST(Tar, SizesMayBeOfBase256) {
  using namespace std::string_literals;
  // 10 GiB, of which only the header is there.
  const std::string size = "\x80\0\0\0\0\0\0\x02\x80\0\0\0"s;
  const std::string bytes = with_field(tar_of({{"big.jpg", ""}}), 124, size);
  const uint64_t contents = uint64_t{10} << 30;
  uint64_t found = 0;
  const auto error = error_of([&] {
    for_each_tar_member(archive_of(bytes, contents + 512),
                        [&](const TarMember& member) { found = member.bytes; });
  });
  EXPECT_EQ(found, contents);
  EXPECT_NE(std::string(error.what()).find("ends without its end mark"), std::string::npos);
}

TEST(Tar, PaxSizesCount) {
  const std::string text = "12 size=600\n";
  std::string bytes = tar_of({{"pax", text}, {"x.jpg", std::string(600, 'x')}});
  bytes = with_field(bytes, 156, "x");  // the first is now the second's record
  bytes = with_field(bytes, 1024 + 124, "00000000000");
  expect_members(bytes, {{"x.jpg", std::string(600, 'x')}});
}

TEST(Tar, AnArchiveThatIsCutOffIsNamed) {
  const std::string whole = tar_of(kMembers);
  EXPECT_EQ(tar_fault(""), "a.tar: byte 0: the archive ends without its end mark: it is cut off");
  EXPECT_EQ(tar_fault(whole.substr(0, 100)),
            "a.tar: byte 0: the archive ends within a header: it is cut off");
  EXPECT_EQ(tar_fault(whole.substr(0, 515)),
            "a.tar: byte 0: a.txt has 5 bytes, of which the archive has 3: it is cut off");
  EXPECT_EQ(tar_fault(whole.substr(0, 1024)),
            "a.tar: byte 1024: the archive ends without its end mark: it is cut off");
  for (size_t size = 0; size + 1024 < whole.size(); size += 37) {
    EXPECT_NE(tar_fault(whole.substr(0, size)).find("cut off"), std::string::npos) << size;
  }
}

TEST(Tar, CompressionIsNamed) {
  EXPECT_EQ(tar_fault("\x1f\x8b\x08"),
            "a.tar is compressed by gzip, and its samples have no place in it: unpack it (gunzip)");
  EXPECT_EQ(tar_fault("\x28\xb5\x2f\xfd" + std::string(2000, 'x')),
            "a.tar is compressed by zstd, and its samples have no place in it: unpack it (unzstd)");
  const std::string plain = tar_of({{"BZh.txt", "text"}});
  int64_t members = 0;
  for_each_tar_member(archive_of(plain), [&](const TarMember&) { ++members; });
  EXPECT_EQ(members, 1);
}

TEST(Tar, DamageIsNamed) {
  using namespace std::string_literals;
  const std::string whole = tar_of(kMembers);
  std::string damaged = whole;
  damaged[1024 + 3] ^= 1;
  EXPECT_EQ(tar_fault(damaged), "a.tar: byte 1024: no header of a tar archive, or a damaged one");
  EXPECT_EQ(tar_fault(with_field(whole, 124, "0000000zz00")),
            "a.tar: byte 0: a size that is no number");
  EXPECT_EQ(tar_fault(with_field(whole, 124, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")),
            "a.tar: byte 0: a size that is no number");
  EXPECT_EQ(tar_fault(with_field(whole, 124, "\x80" + std::string(11, '\xFF'))),
            "a.tar: byte 0: a size that is no number");
  EXPECT_NE(tar_fault(with_field(whole, 156, "S")).find("a sparse file, which is not supported"),
            std::string::npos);
  EXPECT_EQ(tar_fault(with_field(whole, 156, "x")),
            "a.tar: byte 512: a PAX record that is damaged");
  EXPECT_NE(tar_fault(with_field(with_field(whole, 156, "L"), 124, "77777777777"), 1ULL << 40)
                .find("a name or record of 8589934591 bytes; allowed: 1048576"),
            std::string::npos);
}

TEST(Tar, TheNameBeforeAPlaceIsFound) {
  const std::string bytes = tar_of(kMembers);
  EXPECT_EQ(tar_name_before(archive_of(bytes), 512), "a.txt");
  EXPECT_EQ(tar_name_before(archive_of(bytes), 1024 + 512), "empty.cls");
  EXPECT_EQ(tar_name_before(archive_of(bytes), 600), "");
  EXPECT_EQ(tar_name_before(archive_of(bytes), 100), "");
  EXPECT_EQ(tar_name_before(archive_of(bytes), 1 << 20), "");
}

}  // namespace
}  // namespace lockstep
