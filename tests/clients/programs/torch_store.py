"""PyTorch's TCPStore as a client of the store that the launcher serves at MASTER_ADDR:MASTER_PORT,
before any process group exists: every operation, and what each of two clients sees. The answers are
the result, so they must be torchrun's."""
import datetime
import os

import torch.distributed as dist

from client import ATTEMPT, RANK, path

SHORT = datetime.timedelta(milliseconds=200)


def connect(**more):
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
                         timeout=datetime.timedelta(seconds=60), **more)


def failure(call):
    """The kind of the error of a call that must fail."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


def values(store):
    store.set("k", "v")
    store.set("empty", "")
    store.multi_set(["m1", "m2"], ["1", "two"])
    store.append("k", "w")
    store.append("appended", "first")
    yield store.get("k"), store.get("empty"), store.multi_get(["m2", "m1"]), store.get("appended")
    yield store.add("n", 5), store.add("n", -7), store.get("n")
    yield store.compare_set("c", "", "a"), store.compare_set("c", "b", "x")
    yield store.compare_set("c", "a", "b"), store.compare_set("none", "old", "new")
    yield store.check(["k", "c"]), store.check(["k", "none"]), store.num_keys()
    yield store.delete_key("m1"), store.delete_key("m1"), store.num_keys()
    yield sorted(store.list_keys()) if hasattr(store, "list_keys") else "-"
    big = "x" * (1 << 20)
    store.set("big", big)
    yield store.get("big") == big.encode(), store.delete_key("big")


def waits(store):
    """A wait that times out leaves a connection that can be used."""
    yield failure(lambda: store.wait(["k", "never"], SHORT)), store.get("k")
    store.set_timeout(SHORT)
    yield failure(lambda: store.get("never")), failure(lambda: store.queue_pop("no queue"))
    store.set_timeout(datetime.timedelta(seconds=60))
    store.wait(["k"])
    yield failure(lambda: store.queue_pop("no queue", False)), store.queue_len("no queue")
    yield connect(use_libuv=False).get("k")


def queues(store):
    store.queue_push("q", "a")
    store.queue_push("q", "b")
    yield store.queue_len("q"), store.check(["q"]), store.queue_pop("q"), store.queue_pop("q", False)
    yield store.queue_len("q"), store.check(["q"])


def together(store):
    """Both ranks: each waits for the other, a queue gives each its element, counters add up."""
    store.set(f"here{RANK}", str(RANK))
    store.wait(["here0", "here1"])
    yield store.multi_get(["here0", "here1"])
    if RANK == 0:
        store.set("elements", "")
        first = store.queue_pop("shared")
        store.set("popped0", first)
    else:
        store.wait(["elements"])
        store.queue_push("shared", "x")
        store.wait(["popped0"])
    yield store.get("popped0")
    total = store.add("sum", RANK + 1)
    if RANK == 0:
        while total < 3:
            total = store.add("sum", 0)
    yield store.get("sum") if RANK == 0 else "-"
    prefixed = dist.PrefixStore("p", store)
    prefixed.set(f"r{RANK}", "own")
    prefixed.wait(["r0", "r1"])
    yield prefixed.get("r0"), store.get("p/r1")
    if hasattr(store, "barrier"):
        store.barrier("both", 2)


def main():
    store = connect()
    lines = []
    if RANK == 0:
        for part in (values, waits, queues):
            lines += [f"{part.__name__} {answer}" for answer in part(store)]
        # Text is no number: that client's connection ends, and no other.
        store.set("word", "w")
        lines.append(f"text {failure(lambda: connect().add('word', 1))} {store.get('word')}")
        store.set("counted", "")
    store.wait(["counted"])  # rank 1 sets nothing while rank 0 counts keys
    lines += [f"together {answer}" for answer in together(store)]
    # A group beside it: all ranks are clients of the same store.
    dist.init_process_group("gloo")
    dist.barrier()  # else rank 0 may be gone before rank 1 is connected
    lines.append(f"group {dist.get_world_size()} agent={os.environ['TORCHELASTIC_USE_AGENT_STORE']}")
    dist.destroy_process_group()
    if RANK == 0:
        with open(path("result"), "w") as file:
            file.write("\n".join(lines + [f"restarts={ATTEMPT} world={os.environ['WORLD_SIZE']} "]) + "\n")


if __name__ == "__main__":
    main()
