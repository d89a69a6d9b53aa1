# Two hosts (or more) made of namespaces, a few ranks each: all_reduce and a step of DDP by
# tutti, which lets one leader a host talk, and by flat gloo, in turns, in one run; time, and bytes
# over the link of a host.
#
#     PYTHONPATH=build/release/python build/venv/bin/python perf/torch/hosts.py [--ranks 2]
#         [--hosts 2] [--rounds 4] [--sizes 4,1024,...]
#
# Median of the rounds and the spread between the lowest and the highest; ratio: gloo / tutti.
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/python"))
import hosts_support  # noqa: E402
from torch_support import dist, skip, torch  # noqa: E402

MOST = 64 << 20


def groups_of(rank, size, port):
    torch.set_num_threads(1)
    dist.init_process_group("tutti", init_method=f"tcp://10.77.0.1:{port}", rank=rank,
                            world_size=size)
    return {"tutti": dist.group.WORLD, "gloo": dist.new_group(list(range(size)), backend="gloo")}


def model_of(group):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[layer for _ in range(4)
                                  for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())])
    return torch.nn.parallel.DistributedDataParallel(model, process_group=group)


def measured(rank, size, port, names, sizes, rounds, path):
    """Rank 0 tells when a turn begins and ends: the other process reads the link's counters
    there."""
    groups = groups_of(rank, size, port)
    models = {name: model_of(groups[name]) for name in ("tutti", "gloo")}
    data = torch.randn(16, 512)

    def step(name):
        models[name].zero_grad()
        models[name](data).sum().backward()

    def tell(word):
        """The port's counters lie outside this host."""
        if rank == 0:
            with open(os.path.join(path, "asks"), "w") as file:
                file.write(word + "\n")
            with open(os.path.join(path, "says")) as file:
                return float(file.readline())
        return 0.0

    for what in sizes + ["step"]:
        x = None if what == "step" else torch.ones(max(1, what // 4))
        times = 10 if what == "step" else max(2, min(200, (8 << 20) // max(what, 1)))
        seen = {name: ([], []) for name in names}
        for turn in range(rounds):
            for name in (names if turn % 2 == 0 else names[::-1]):
                group = groups[name]
                run = ((lambda: step(name)) if x is None
                       else (lambda: dist.all_reduce(x, group=group)))
                run()
                dist.barrier()
                before = tell("bytes")
                begun = time.perf_counter()
                for _ in range(times):
                    run()
                took = (time.perf_counter() - begun) / times
                dist.barrier()
                seen[name][0].append(took * 1e6)
                seen[name][1].append((tell("bytes") - before) / times)
        if rank == 0:
            cells = []
            for name in names:
                t, b = seen[name]
                cells.append((statistics.median(t), min(t), max(t), statistics.median(b)))
            ratio = cells[1][0] / cells[0][0]
            print(f"| {what} | " + " | ".join(f"{m:.0f} ({low:.0f} to {high:.0f}) | {b:.0f}"
                                              for m, low, high, b in cells)
                  + f" | {ratio:.2f} | {cells[1][3] / max(cells[0][3], 1):.2f} |", flush=True)
    dist.destroy_process_group()


def main():
    ask = argparse.ArgumentParser()
    for name, value in (("ranks", 2), ("hosts", 2), ("rounds", 4)):
        ask.add_argument(f"--{name}", type=int, default=value)
    ask.add_argument("--sizes", default="4,256,4096,65536,1048576,16777216,67108864")
    how = ask.parse_args()
    why = hosts_support.refusal()
    if why:
        skip(why)
    hosts = hosts_support.Hosts(how.hosts)
    print(f"{how.hosts} hosts x {how.ranks} ranks, {os.cpu_count()} CPUs, torch "
          f"{torch.__version__}\n\n| bytes | tutti, us | bytes of host a's link | gloo, us | bytes "
          "of host a's link | times as fast | bytes, gloo / tutti |\n"
          "| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as path:
        for name in "asks", "says":
            os.mkfifo(os.path.join(path, name))

        def counters():
            while True:
                with open(os.path.join(path, "asks")) as file:
                    if not file.readline():
                        continue
                with open(os.path.join(path, "says"), "w") as file:
                    file.write(f"{hosts.bytes(0)[0]}\n")

        pid = os.fork()
        if pid == 0:
            counters()
        ends = hosts.run(how.ranks, measured, how.hosts * how.ranks, 29400, ["tutti", "gloo"],
                         [int(n) for n in how.sizes.split(",")], how.rounds, path)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    hosts.close()
    sys.exit(any(ends))


if __name__ == "__main__":
    main()
