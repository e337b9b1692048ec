#pragma once
// Parsing of firewall programs' output, as pure functions.

#include <string>

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

}  // namespace lockstep::doctor
