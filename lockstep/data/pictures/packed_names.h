#pragma once
// Names of millions of pictures in memory, without the bytes that neighbours share.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/pictures/name_text.h"

namespace lockstep::inline internal {

/// Names 0 .. size()-1, of any bytes and lengths, in blocks of 16. The first of a block is whole.
/// Of another one, those bytes are left out that the name before has at its beginning or at its
/// end, too.
///
/// Memory: three bytes a name and those that are not left out; half a byte for the block's place.
/// Sorted ones such as n01440764_10026.JPEG take 7 or 8 altogether, with the folder's name or
/// without; random ones take about their lengths.
/// add() comes before the other changes. Read-only then: any number of threads may read.
class PackedNames {
 public:
  void add(std::string_view name);
  /// Only the first `size`, at most all.
  void keep(int64_t size);
  /// Gives spare memory back.
  void shrink();
  /// Moves the names out of memory by NameText::put(); false if that cannot be. Half a byte a name
  /// stays.
  bool move_to(const std::filesystem::path& folder);

  int64_t size() const { return size_; }
  /// Reads up to 16 names: less than a microsecond in memory, else one pread(2). Errors:
  /// DataChanged if a file has lost it.
  std::string at(int64_t index) const;
  /// Calls `found` with each name in turn; each is valid during that call. Errors: those of at().
  void for_each(const std::function<void(int64_t index, std::string_view name)>& found) const;
  size_t memory_bytes() const { return bytes_.capacity() + begins_.capacity() * sizeof(uint64_t); }

 private:
  /// The bytes of the block; `buffer` may hold them.
  std::string_view block(int64_t number, std::string& buffer) const;
  [[noreturn]] void damaged() const;

  int64_t size_ = 0;
  std::string bytes_;             // of all blocks, unless text_ has them
  uint64_t end_ = 0;              // of the last block
  std::vector<uint64_t> begins_;  // of the blocks
  std::string last_;              // the name that was added last
  std::shared_ptr<const NameText> text_;
};

}  // namespace lockstep::inline internal
