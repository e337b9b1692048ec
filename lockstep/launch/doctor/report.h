#pragma once
// The doctor's findings for people and for programs.

#include <string>

#include "lockstep/launch/doctor/checks.h"

namespace lockstep::doctor {

/// The table of checks, the matrix of links, and a summary line. `terminal`: with symbols and
/// colours; else plain words.
std::string report_text(const Findings& findings, const CheckRows& rows, bool terminal);

/// One object: "verdict", "checks", "hosts" with their facts, "links", "pairs".
std::string report_json(const Findings& findings, const CheckRows& rows);

/// 1 if a row fails, else 0.
int exit_status_of(const CheckRows& rows);

}  // namespace lockstep::doctor
