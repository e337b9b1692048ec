#include "lockstep/base/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(Crc32, IsThatOfZip) {
  EXPECT_EQ(crc32_of(""), 0U);
  EXPECT_EQ(crc32_of("123456789"), 0xcbf43926U);
  const std::string text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(crc32_of(text), 0x414fa339U);
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(crc32_of(text.substr(at), crc32_of(text.substr(0, at))), 0x414fa339U) << at;
  }
}

TEST(Crc32c, HasTheValuesOfItsStandard) {
  EXPECT_EQ(crc32c_of(""), 0U);
  EXPECT_EQ(crc32c_of("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c_of(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c_of(std::string(32, '\xff')), 0x62a8ab43U);
}

}  // namespace
}  // namespace lockstep
