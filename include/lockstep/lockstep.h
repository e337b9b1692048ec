#pragma once
// This header includes all that a training program needs to run on many processes: link
// lockstep::core. Each header is the manual of its part, with threads, cost and errors.
//
// Use:
//   lockstep::World world = lockstep::World::join();
//   auto group = lockstep::ProcessGroup::create(world);
//   auto model = lockstep::DistributedDataParallel(net, group);
//   loss_of(model.forward(images), labels).backward();  // gradients are averaged here
//   optimizer.step();

#include "lockstep/autocast.h"
#include "lockstep/collectives.h"
#include "lockstep/comm_hook.h"
#include "lockstep/data_sampler.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"
#include "lockstep/evaluation.h"
#include "lockstep/foreach_optimizers.h"
#include "lockstep/grad_scaler.h"
#include "lockstep/process_group.h"
#include "lockstep/progress.h"
#include "lockstep/spawn.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/version.h"
#include "lockstep/weights.h"
#include "lockstep/world.h"
