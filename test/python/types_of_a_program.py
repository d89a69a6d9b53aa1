# Read by mypy, never run: what a program may write, and, where a line ends in "wrong",
# what it may not.
import asyncio
from typing import Any, Callable, List, Optional, Tuple

import tutti

world: tutti.Comm = tutti.init(timeout=60, bind="core")
rank: int = world.rank
ranks: Tuple[int, ...] = tutti.failed()
number: int = tutti.rank() + tutti.size()
name: str = world.rank                                          # wrong
tutti.rank = 3                                                  # wrong
tutti.init("job")                                               # wrong

x = bytearray(8)
tutti.all_reduce(x, "avg", timeout=0.5, stream=7)
world.all_reduce(x, op="sum", factor=2.0, out=bytearray(8), dtype="bf16")
tutti.all_reduce(x, averaged=True)                              # wrong
tutti.broadcast(x, root="first")                                # wrong
world.barrier(timeout="soon")                                   # wrong
tutti.all_reduce()                                              # wrong
work: Optional[tutti.Work] = tutti.barrier(async_=True, keep=True, timeout=1)
message: tutti.Message = world.recv(x, from_=tutti.ANY)
tutti.send(x, 1, tag=3).wait()                                  # wrong

largest: tutti.Op = tutti.op(lambda in_, inout: None)
world.reduce(x, largest, 0)
world.reduce(x, 11)                                             # wrong

with tutti.first("data") as mine:
    prepares: bool = mine
with world.turn(timeout=3):
    pass


@tutti.once("build")
def build(depth: int) -> str:
    return "built"


half: Optional[tutti.Comm] = world.split(rank % 2)
world.split(0).barrier()                                        # wrong
with world.create([0, 1]) as two:
    two.free()

seed: int = tutti.seed(1) + tutti.seed_everything(2)
value: bytes = tutti.get("key", timeout=2)
tutti.set("key", 3)                                             # wrong
ticket: int = tutti.add("ticket")
won: bool = tutti.compare_set("key", b"", value)
ends: List[int] = tutti.spawn(lambda world: world.barrier(), 4, timeout=10)

later: tutti.Work = tutti.all_reduce(x, async_=True)
later.add_done_callback(lambda done: print(done.test(), done.wait(timeout=1)))
later.add_done_callback(3)                                      # wrong


async def program() -> Any:
    await later
    return await asyncio.wrap_future(later.future())

try:
    tutti.barrier()
except tutti.RankDied as error:
    print(error.ranks, error.report.upper(), error.errno + 1)
    print(error.rank)                                           # wrong
