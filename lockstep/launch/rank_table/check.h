#pragma once
// The rules of HCCL and of Ascend hosts for a table whose ranks are sound. Faults that HCCL stops
// at are errors; what only the hardware limits is a warning, since it does not concern other hosts.

#include <string>
#include <vector>

#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep {

/// Generations of Ascend hosts that want their devices' addresses in different subnets.
enum class AscendGeneration {
  kTraining,  ///< Atlas training series: devices 0/4, 1/5, 2/6, 3/7 of a host share a subnet, those
              ///< of 0-3 and of 4-7 have four different ones; equal ids of all hosts share one.
  kA2,        ///< Atlas A2: one subnet for all.
};

std::string_view to_string(AscendGeneration generation);

/// What of the device addresses breaks the rules of a generation. A subnet is the address without
/// its last 8 bits, within which addresses of one subnet may differ. IPv6: without its last 64.
std::vector<RankTableFault> check_subnets(const RankTable& table, AscendGeneration generation);

/// No device address is there twice.
std::vector<RankTableFault> check_addresses(const RankTable& table);

/// Ranks increase with the server ids as texts; device addresses are unique, on all devices or on
/// none, and fit a generation; 1, 2, 4 or 8 devices on one host, the pairs and fours within 0-3 or
/// 4-7, and 8 on each of several. A table for CPU and GPU hosts passes.
std::vector<RankTableFault> check_hccl_rules(const RankTable& table);

/// All there is to say about a file's text: form, ranks and rules, errors first.
std::vector<RankTableFault> check_rank_table(std::string_view json);

}  // namespace lockstep
