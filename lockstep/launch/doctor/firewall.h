#pragma once
// This host's firewalls, by the programs that list their rules. Parsing their output is pure.

#include <vector>

#include "lockstep/launch/doctor/facts.h"
#include "lockstep/launch/process/subprocess.h"

namespace lockstep::doctor {

/// `nft list ruleset`: a chain on the input hook that drops or rejects.
Firewall read_nft(const ProgramOutput& output);
/// `iptables -S`: the same.
Firewall read_iptables(const ProgramOutput& output);
/// `ufw status`.
Firewall read_ufw(const ProgramOutput& output);
/// `firewall-cmd --state`.
Firewall read_firewalld(const ProgramOutput& output);

/// Runs these programs, iptables only without nft. Cost: 10 s each at most.
std::vector<Firewall> firewalls();

}  // namespace lockstep::doctor
