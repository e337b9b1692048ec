#pragma once
// Rules of HCCL and of Ascend hosts for a table with correct ranks. Faults that stop HCCL are
// errors. Limits of the hardware alone are warnings, since they do not apply to other hosts.

#include <vector>

#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {

/// Generations of Ascend hosts with rules for the subnets of their devices' addresses.
enum class AscendGeneration {
  kTraining,  ///< Atlas training series: devices 0/4, 1/5, 2/6, 3/7 of a host share a subnet; 0-3
              ///< and 4-7 have four different ones each; equal ids of all hosts share one.
  kA2,        ///< Atlas A2: one subnet for all.
};

std::string_view to_string(AscendGeneration generation);

/// Device addresses that break the rules of a generation. The last 8 bits of an address are not
/// part of its subnet; of an IPv6 address, the last 64.
std::vector<RankTableFault> check_subnets(const RankTable& table, AscendGeneration generation);

/// Device addresses that appear twice.
std::vector<RankTableFault> check_addresses(const RankTable& table);

/// Ranks increase with the server ids as texts. Device addresses are unique, on all devices or on
/// none, and fit a generation. One host has 1, 2, 4 or 8 devices, 2 or 4 of them within 0-3 or 4-7;
/// each of several hosts has 8. A table for CPU and GPU hosts passes.
std::vector<RankTableFault> check_hccl_rules(const RankTable& table);

/// All faults of a file's text: form, ranks and rules, errors first.
std::vector<RankTableFault> check_rank_table(std::string_view json);

}  // namespace lockstep::inline internal
