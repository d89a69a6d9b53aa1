# Two hosts (or more) made of namespaces, a few ranks each: all_reduce and a step of DDP by
# tutti, which lets one leader a host talk, and by flat gloo, in turns, in one run; time, and bytes
# over the link of a host.
#
#     PYTHONPATH=build/release/python build/venv/bin/python perf/torch/hosts.py [--ranks 2]
#         [--hosts 2] [--rounds 4] [--sizes 4,1024,...] [--delay MICROSECONDS] [--turns] [--parts]
#
# Median of the rounds and the spread between the lowest and the highest; ratio: gloo / tutti.
# --delay: packets between hosts take so long, by perf/relay. --turns: ranks are placed in turns,
# 0 on host a, 1 on b, ...; without it host by host. --parts: in place of gloo, the two parts of an
# operation one after the other: among the ranks of a host, then among one rank of each host; what
# overlaps is less than both.
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/python"))
import hosts_support  # noqa: E402
from slow_link import SlowLink  # noqa: E402
from torch_support import dist, skip, torch  # noqa: E402


def groups_of(rank, size, port, how):
    """By name: a list of groups, in which an operation is done one after the other."""
    torch.set_num_threads(1)
    net = "10.77.0"
    if how.delay:
        os.environ["GLOO_SOCKET_IFNAME"], net = "slow0", "10.78.0"
    at, of = rank % how.ranks, rank // how.ranks        # its place on its host, its host
    if how.turns:
        rank = at * how.hosts + of
    dist.init_process_group("tutti", init_method=f"tcp://{net}.1:{port}", rank=rank,
                            world_size=size)

    def number(place, host):
        return place * how.hosts + host if how.turns else host * how.ranks + place
    if not how.parts:
        return {"tutti": [dist.group.WORLD],
                "gloo": [dist.new_group(list(range(size)), backend="gloo")]}
    near = [dist.new_group([number(i, h) for i in range(how.ranks)]) for h in range(how.hosts)]
    far = dist.new_group([number(0, h) for h in range(how.hosts)])
    return {"tutti": [dist.group.WORLD], "parts": [near[of], *([far] if at == 0 else [])]}


def model_of(group):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[layer for _ in range(4)
                                  for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())])
    return torch.nn.parallel.DistributedDataParallel(model, process_group=group)


def measured(rank, size, port, sizes, how, path):
    """Rank 0 tells when a turn begins and ends: the other process reads the link's counters
    there."""
    groups = groups_of(rank, size, port, how)
    names, rounds = list(groups), how.rounds
    models = {} if how.parts else {name: model_of(groups[name][0]) for name in names}
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

    for what in sizes + (["step"] if models else []):
        x = None if what == "step" else torch.ones(max(1, what // 4))
        times = 10 if what == "step" else max(2, min(200, (8 << 20) // max(what, 1)))
        times = min(times, 40) if how.delay else times
        seen = {name: ([], []) for name in names}
        for turn in range(rounds):
            for name in (names if turn % 2 == 0 else names[::-1]):
                def run():
                    for group in groups[name] if x is not None else []:
                        dist.all_reduce(x, group=group)
                    if x is None:
                        step(name)
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


def sent(hosts, how):
    """Bytes that host a has sent so far."""
    if not how.delay:
        return hosts.bytes(0)[0]
    with open(f"/proc/{hosts.all[0].pid}/net/dev") as file:
        return next(int(line.split(":")[1].split()[8]) for line in file if "slow0:" in line)


def main():
    ask = argparse.ArgumentParser()
    for name, value in (("ranks", 2), ("hosts", 2), ("rounds", 4)):
        ask.add_argument(f"--{name}", type=int, default=value)
    ask.add_argument("--delay", type=int, default=0)
    for name in "turns", "parts":
        ask.add_argument(f"--{name}", action="store_true")
    ask.add_argument("--sizes", default="4,256,4096,65536,1048576,16777216,67108864")
    how = ask.parse_args()
    why = hosts_support.refusal()
    if why:
        skip(why)
    hosts = hosts_support.Hosts(how.hosts)
    link = SlowLink(hosts, how.delay) if how.delay else None
    other = "parts" if how.parts else "gloo"
    print(f"{how.hosts} hosts x {how.ranks} ranks, placed "
          f"{'in turns' if how.turns else 'host by host'}, {how.delay} us of delay, "
          f"{os.cpu_count()} CPUs, torch {torch.__version__}\n\n| bytes | tutti, us | bytes of "
          f"host a's link | {other}, us | bytes of host a's link | times as fast | bytes, {other} "
          "/ tutti |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as path:
        for name in "asks", "says":
            os.mkfifo(os.path.join(path, name))

        def counters():
            while True:
                with open(os.path.join(path, "asks")) as file:
                    if not file.readline():
                        continue
                with open(os.path.join(path, "says"), "w") as file:
                    file.write(f"{sent(hosts, how)}\n")

        pid = os.fork()
        if pid == 0:
            counters()
        ends = hosts.run(how.ranks, measured, how.hosts * how.ranks, 29400,
                         [int(n) for n in how.sizes.split(",")], how, path, limit=600)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    if link:
        link.close()
    hosts.close()
    sys.exit(any(ends))


if __name__ == "__main__":
    main()
