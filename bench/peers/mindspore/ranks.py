#!/usr/bin/env python3
"""The calls of mindspore.communication on this process, one line each: RANK|CALL|RESULT.

Under msrun or mpirun with 2 processes; `bench_mindspore ranks` prints Lockstep's lines.
"""
import numpy as np

import mindspore as ms
from mindspore import ops
from mindspore.communication import (GlobalComm, create_group, destroy_group,
                                     get_group_rank_from_world_rank, get_group_size,
                                     get_local_rank, get_local_rank_size, get_rank,
                                     get_world_rank_from_group_rank, init)


def say(call, function):
    try:
        result = function()
    except Exception as error:  # the table shows what a call of this back end cannot do
        result = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:60]}"
    print(f"{RANK}|{call}|{result}", flush=True)
    return result


init()
ms.set_context(mode=ms.PYNATIVE_MODE)
RANK = get_rank()
WORLD = GlobalComm.WORLD_COMM_GROUP
say("get_rank()", get_rank)
say("get_group_size()", get_group_size)
say("get_local_rank()", get_local_rank)
say("get_local_rank_size()", get_local_rank_size)
say("get_world_rank_from_group_rank(WORLD, 1)", lambda: get_world_rank_from_group_rank(WORLD, 1))
say("get_group_rank_from_world_rank(1, WORLD)", lambda: get_group_rank_from_world_rank(1, WORLD))
say("create_group('pair', [0, 1])", lambda: create_group("pair", [0, 1]))
say("get_group_size('pair')", lambda: get_group_size("pair"))
say("get_rank('pair')", lambda: get_rank("pair"))
say("get_world_rank_from_group_rank('pair', 1)", lambda: get_world_rank_from_group_rank("pair", 1))
say("destroy_group('pair')", lambda: destroy_group("pair"))
own = ms.Tensor(np.array([RANK + 1.0, 10.0 * (RANK + 1)], np.float32))
say("AllReduce()([r+1, 10(r+1)])", lambda: ops.AllReduce()(own).asnumpy().tolist())
say("AllGather()([r+1, 10(r+1)])", lambda: ops.AllGather()(own).asnumpy().tolist())
say("Broadcast(0)(([r+1, 10(r+1)],))", lambda: ops.Broadcast(0)((own,))[0].asnumpy().tolist())
