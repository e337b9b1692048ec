#pragma once
// Collectives that only move data, each seen as one exchange: what a rank gives to every other, and
// where what it gets belongs. Pure functions; a back end carries out any Exchange.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/types.h"

namespace lockstep {

enum class ExchangeKind : uint8_t { kGather, kScatter, kAllToAll, kAllGatherv, kAllToAllv };
/// "all_to_allv".
std::string_view to_string(ExchangeKind kind);

/// `count` elements, from element `offset` on.
struct Piece {
  int64_t offset = 0;
  int64_t count = 0;
  int64_t end() const { return offset + count; }
  bool operator==(const Piece&) const = default;
};

/// One rank's part in it. Pieces of several receivers may be the same elements; no two pieces that
/// come in overlap.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kAllToAllv;
  DType dtype = DType::kUint8;
  int64_t count = 0;            ///< Elements of every piece of the even kinds; 0 for the uneven.
  int root = 0;                 ///< Of gather and scatter; else 0.
  std::vector<Piece> sends;     ///< By rank: what of the input goes there.
  std::vector<Piece> receives;  ///< By rank: where in the output what comes from there belongs.

  /// All ranks know all counts once they agree on kind, count and root.
  bool even() const {
    return kind != ExchangeKind::kAllGatherv && kind != ExchangeKind::kAllToAllv;
  }
  /// Elements of the input (output) that the pieces reach to.
  int64_t in_count() const;
  int64_t out_count() const;
  int64_t bytes() const { return (in_count() + out_count()) * size_of(dtype); }
};

/// Root gets count elements of every rank, in rank order.
Exchange gather_exchange(int rank, int size, int64_t count, DType dtype, int root);
/// Rank r gets elements [r * count, (r + 1) * count) of root's input.
Exchange scatter_exchange(int rank, int size, int64_t count, DType dtype, int root);
/// Rank r gets elements [r * count, (r + 1) * count) of everyone's input, in rank order.
Exchange all_to_all_exchange(int rank, int size, int64_t count, DType dtype);
/// Everyone gets counts[r] elements of each rank r, one after the other.
Exchange all_gatherv_exchange(int rank, std::span<const int64_t> counts, DType dtype);
/// sends[r] elements go to rank r, receives[r] come from there; both lie in rank order.
Exchange all_to_allv_exchange(std::span<const int64_t> sends, std::span<const int64_t> receives,
                              DType dtype);

/// The same seen by `ranks` of the group only, numbered by their place in the list.
Exchange among(const Exchange& exchange, std::span<const int> ranks);

/// What a rank hands on to others, as one stream: each element that somebody else needs, once, in
/// the order of the input. Numbers are elements.
class OutStream {
 public:
  OutStream(std::span<const Piece> sends, int self);

  int64_t size() const { return size_; }
  /// Where in the stream a piece that another rank gets begins.
  int64_t position_of(const Piece& piece) const;
  /// The parts of the input that make [begin, end) of the stream.
  std::vector<Piece> parts(int64_t begin, int64_t end) const;

 private:
  std::vector<Piece> ranges_;  // sorted, apart
  int64_t size_ = 0;
};

}  // namespace lockstep
