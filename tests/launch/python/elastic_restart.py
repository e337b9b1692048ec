"""Rank 0 dies in the first attempt, after all have met; the second attempt ends well."""
import os
import signal

import torch
import torch.distributed as dist

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"attempt {attempt} of {os.environ['TORCHELASTIC_MAX_RESTARTS']}: sum {int(total)}", flush=True)
if attempt == 0 and dist.get_rank() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
dist.destroy_process_group()
