"""Rank 1 fails inside torch.distributed.elastic's record decorator; the others wait to be ended."""
import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the batch is bad")
    time.sleep(600)


if __name__ == "__main__":
    main()
