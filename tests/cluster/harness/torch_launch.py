"""python -m torch.distributed.launch, mended as tests/launch/torchrun.py mends torchrun."""
import runpy
import sys

from torch.distributed.elastic.multiprocessing import api

api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))
sys.argv[0] = "launch"
runpy.run_module("torch.distributed.launch", run_name="__main__", alter_sys=True)
