#pragma once

#include <string>

namespace lockstep {

/// Whether the program in this file calls warm_start(): an ELF note says so, which is linked with
/// it. False for what is no program of this machine. Cost: reads its first page.
bool asks_for_warm_start(const std::string& path);

// The note's owner and type, as in Elf64_Nhdr.
inline constexpr char kWarmNoteOwner[] = "Lockstep";
inline constexpr unsigned kWarmNoteType = 0x7761726d;  // "warm"

}  // namespace lockstep
