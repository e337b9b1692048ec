// Tar archives: any bytes are either refused with kCorrupt, or give members that lie within them.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lockstep/data/pictures/shards.h"
#include "lockstep/data/pictures/tar.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const TarBytes archive{size,
                         [&](uint64_t at, char* to, size_t count) {
                           if (at >= size) return size_t{0};
                           const size_t there = std::min(count, size - static_cast<size_t>(at));
                           std::memcpy(to, data + at, there);
                           return there;
                         },
                         "input"};
  try {
    for_each_tar_member(archive, [&](const TarMember& member) {
      if (member.begin > size || member.bytes > size - member.begin) std::abort();
      const size_t head = member.head.size();
      if (head > member.bytes || head > 512) std::abort();
      if (std::memcmp(member.head.data(), data + member.begin, head) != 0) std::abort();
      split_member_name(member.name);
      tar_name_before(archive, member.begin);
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) std::abort();
  }
  return 0;
}
