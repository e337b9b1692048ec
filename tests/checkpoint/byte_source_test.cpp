#include "lockstep/checkpoint/byte_source.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(ByteSource, PiecesAreAllBytesInOrder) {
  std::string bytes(600'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  const MemoryBytes file("x", bytes);
  std::string joined;
  int pieces = 0;
  file.read_pieces(3, bytes.size() - 5, [&](std::string_view piece) {
    joined += piece;
    ++pieces;
  });
  EXPECT_TRUE(joined == bytes.substr(3, bytes.size() - 5));
  EXPECT_EQ(pieces, 3);
  file.read_pieces(3, 0, [](std::string_view) { FAIL() << "there is nothing to read"; });
  EXPECT_THROW(file.read_pieces(1, bytes.size(), [](std::string_view) {}), Error);
}

}  // namespace
}  // namespace lockstep
