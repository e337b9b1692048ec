#include "lockstep/comm/native/shm/control.h"

#include "lockstep/base/rounding.h"

namespace lockstep::shm {

int64_t Control::slots_offset() {
  return round_up(sizeof(Head), 4096);
}

int64_t Control::staging_offset(int num_ranks) {
  return slots_offset() + round_up(int64_t{sizeof(RankSlot)} * num_ranks, 4096);
}

int64_t Control::channels_offset(int num_ranks) {
  return staging_offset(num_ranks) + int64_t{sizeof(Staging)} * num_ranks;
}

int64_t Control::control_bytes(int num_ranks) {
  return channels_offset(num_ranks) + int64_t{sizeof(Channel)} * num_ranks * num_ranks;
}

}  // namespace lockstep::shm
