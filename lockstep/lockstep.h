#pragma once
// What a training program needs to run on many processes: link lockstep::parallel.

#include "lockstep/comm/process_group.h"
#include "lockstep/launch/progress.h"
#include "lockstep/launch/spawn/spawn.h"
#include "lockstep/launch/warm/warm_start.h"
#include "lockstep/launch/world.h"
#include "lockstep/parallel/comm_hook.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/distributed_sampler.h"
#include "lockstep/parallel/evaluation.h"
#include "lockstep/parallel/grad_scaler.h"
