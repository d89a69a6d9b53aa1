# ctest: timeout=900 labels=nosan,faults serial
# A rank is killed at any place of a training step, of DistributedDataParallel, of FSDP2 and of a
# pipeline: each survivor gets tutti.RankDied that names it, within a second, and what the survivors
# have computed until then is the same, bit for bit.
#
#   torch_kill_test.py [KILLS]    how many in all; default 18, and 200 with TUTTI_PROVE=1.
#                                 TUTTI_TEST_SEED repeats them.
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback

from torch_support import dist, torch

import torch.distributed.device_mesh  # noqa: F401 - before ranks are forked, once for all of them
import torch.distributed.fsdp  # noqa: F401
import torch.distributed.pipelining  # noqa: F401
import tutti
import tutti.torch

RANKS = 3
WITHIN, BOUND = 1.0, 30.0       # seconds: to hear of a death; for a rank to say anything at all
WIDTH = 32


def layers(count):
    torch.manual_seed(5)
    return [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
            for _ in range(count)]


def training(model, parameters, rank):
    """A step, and what it leaves: the parameters' bytes."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(number):
        torch.manual_seed(number * RANKS + rank)
        optimizer.zero_grad()
        model(torch.randn(8, WIDTH)).square().mean().backward()
        optimizer.step()
        return parameters()
    return step


def ddp(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers(6)),
                                                      bucket_cap_mb=0.01)
    return training(model, lambda: [p.detach() for p in model.parameters()], rank)


def fsdp(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    model, mesh = torch.nn.Sequential(*layers(6)), init_device_mesh("cpu", (RANKS,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return training(model, lambda: [], rank)           # each has its own shards: nothing to compare


def pipeline(rank):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    part = torch.nn.Sequential(*layers(RANKS)[rank:rank + 1])
    stage = PipelineStage(part, rank, RANKS, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), 0.01)

    def step(number):
        torch.manual_seed(number)
        x, y = torch.randn(16, WIDTH), torch.randn(16, WIDTH)
        optimizer.zero_grad()
        schedule.step(*([x] if rank == 0 else []), **({"target": y} if rank == RANKS - 1 else {}))
        optimizer.step()
        return []
    return step


KINDS = {"ddp": ddp, "fsdp2": fsdp, "pipeline": pipeline}


def digest(tensors):
    return hash(b"".join(tensor.numpy().tobytes() for tensor in tensors))


def rank_main(kind, rank, path, say):
    torch.set_num_threads(1)
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=rank, world_size=RANKS)
    step, digests = KINDS[kind](rank), []
    for number in range(2):
        digests.append(digest(step(number)))
    dist.barrier()
    say({"ready": True})
    try:
        for number in range(2, 100000):
            digests.append(digest(step(number)))
    except tutti.RankDied as error:
        say({"end": "RankDied", "ranks": list(error.ranks), "at": time.monotonic(),
             "digests": digests, "text": str(error)})
    except BaseException as error:
        say({"end": type(error).__name__, "at": time.monotonic(), "digests": digests,
             "text": traceback.format_exc()})
    signal.pause()               # alive until all have said something: an end would be a death, too


def start(kind, path):
    """pids and pipes of the ranks."""
    ranks = []
    for rank in range(RANKS):
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                rank_main(kind, rank, path,
                          lambda it: os.write(into, json.dumps(it).encode() + b"\n"))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(into)
        ranks.append((pid, os.fdopen(out, "rb")))
    return ranks


def hear(pipe, seconds):
    ready, _, _ = select.select([pipe], [], [], seconds)
    line = pipe.readline() if ready else b""
    return json.loads(line) if line else None


def trial(kind, dice):
    """"" if all is well, else what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = start(kind, os.path.join(folder, "store"))
        try:
            if not all(hear(pipe, BOUND) for _, pipe in ranks):
                return "a rank was not ready"
            victim = dice.randrange(RANKS)
            time.sleep(dice.random() * 0.03)            # the place: anywhere in a few steps
            os.kill(ranks[victim][0], signal.SIGKILL)
            killed = time.monotonic()
            heard = {rank: hear(pipe, BOUND) for rank, (_, pipe) in enumerate(ranks)
                     if rank != victim}
            return judge(victim, killed, heard)
        finally:
            for pid, pipe in ranks:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                pipe.close()


def judge(victim, killed, heard):
    for rank, said in heard.items():
        if said is None:
            return f"rank {rank} hangs after the death of rank {victim}"
        if said["end"] != "RankDied" or victim not in said["ranks"]:
            return (f"rank {rank} got {said['end']} {said.get('ranks')} after the death of "
                    f"rank {victim}:\n{said['text']}")
        if said["at"] - killed > WITHIN:
            return (f"rank {rank} heard of the death of rank {victim} after "
                    f"{said['at'] - killed:.3f} s:\n{said['text']}")
    first, second = (said["digests"] for said in heard.values())
    steps = min(len(first), len(second))
    if first[:steps] != second[:steps]:
        return f"the survivors of rank {victim} have computed different things"
    return ""


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200 if os.environ.get("TUTTI_PROVE") else 18
    seed = int(os.environ.get("TUTTI_TEST_SEED", "0")) or random.randrange(1, 1 << 32)
    print(f"seed {seed}", flush=True)
    dice, wrong, began = random.Random(seed), 0, time.monotonic()
    for number in range(kills):
        kind = list(KINDS)[number % len(KINDS)]
        why = trial(kind, dice)
        if why:
            wrong += 1
            print(f"kill {number + 1}, {kind}: {why}", flush=True)
    print(f"{kills} kills, {wrong} wrong, {time.monotonic() - began:.0f} s")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
