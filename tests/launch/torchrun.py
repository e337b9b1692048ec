"""torchrun as Debian 12 ships it (torch 1.13 on Python 3.11): there it fails at start, because
iterating over a Flag skips 0 since Python 3.11. Any other torchrun is left as it is."""
from torch.distributed.elastic.multiprocessing import api

try:
    broken = api.Std.from_str("0") is None
except Exception:  # for any error: the next line repairs it
    broken = True
if broken:
    api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))

from torch.distributed.run import main  # noqa: E402

if __name__ == "__main__":
    main()
