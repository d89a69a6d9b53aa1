# SPDX-License-Identifier: MIT
"""A queue of tutti.vllm beside vLLM's own class as shipped: what readers burn, and how late the
last one is, at random paces; and messages a second.

    PYTHONPATH=BUILD/python python servers.py [--vllm FOLDER] [--floor] [--pace MS|burst|flood]
        [--bytes N] [--readers N] [--seconds S] [--rounds N]

FOLDER: where vLLM 0.33's wheel was unpacked; its module is loaded over stubs of what it imports
(needs pyzmq and torch). Without it tutti is measured alone. --floor: beside the least that can be
done. At a pace: a reader that sleeps on a bare futex, with the same pickle and copy, and nothing
else: no room, no deaths, no deadline. In a flood: the copies alone, bytes in and bytes out, with
room for 10 and sched_yield as a wait: no pickle, no sleep, no deaths. In each round all are
measured twice, ABBA, each time with processes of their own, and by the same intervals:
    pace MS   drawn at random (exponential) with this mean
    burst     20 messages 0.2 ms apart, then 30 ms in the mean
    flood     back to back; messages a second, to the last one of the last reader
CPU: of the readers, by CLOCK_PROCESS_CPUTIME_ID. Line time: a round trip of a shared line between
the first two CPUs, half of it.
"""
import argparse
import ctypes
import importlib.util
import logging
import mmap
import multiprocessing
import os
import pickle
import platform
import random
import statistics
import sys
import time
import types

from tutti.vllm import MessageQueue as Ours

BURST, BURST_S, REST_S = 20, 0.0002, 0.03


def stub(name, **names):
    module = types.ModuleType(name)
    module.__dict__.update(names)
    module.__path__ = []
    sys.modules[name] = module


def theirs(folder):
    """vLLM's class, over stubs."""
    count = iter(range(1 << 30))
    stub("vllm")
    stub("vllm.envs", VLLM_USE_SPINLOOP_EXT=False, VLLM_RINGBUFFER_WARNING_INTERVAL=60)
    sys.modules["vllm"].envs = sys.modules["vllm.envs"]
    stub("vllm.distributed")
    stub("vllm.distributed.utils", StatelessProcessGroup=type("StatelessProcessGroup", (), {}),
         sched_yield=os.sched_yield)
    stub("vllm.logger", init_logger=logging.getLogger)
    stub("vllm.platforms", current_platform=None)
    stub("vllm.utils")
    stub("vllm.utils.cpu_resource_utils", check_cgroup_memory_available=lambda *_: None)
    stub("vllm.utils.network_utils", get_ip=lambda: "127.0.0.1",
         get_open_zmq_inproc_path=lambda: f"inproc://{os.getpid()}-{next(count)}",
         get_open_zmq_ipc_path=lambda: f"ipc:///tmp/queue-{os.getpid()}-{next(count)}",
         is_valid_ipv6_address=lambda _: False)
    path = os.path.join(folder, "vllm/distributed/device_communicators/shm_broadcast.py")
    spec = importlib.util.spec_from_file_location(
        "vllm.distributed.device_communicators.shm_broadcast", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.MessageQueue


class Bare:
    """A sequence number that readers sleep on, and SLOTS places, in memory that forks share."""

    SLOTS, PLACE = 16, 2 << 20
    CALL = {"x86_64": 202, "aarch64": 98}.get(platform.machine())

    def __init__(self, readers, _, max_chunk_bytes=0, max_chunks=0):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE + self.SLOTS * self.PLACE)
        self.word = ctypes.c_uint32.from_buffer(self.memory)
        self.futex = ctypes.CDLL(None).syscall
        self.readers, self.read = readers, 0

    def call(self, operation, value):
        self.futex(self.CALL, ctypes.byref(self.word), operation, value, None, None, 0)

    def export_handle(self):
        return self

    @staticmethod
    def create_from_handle(handle, _):
        return handle

    def wait_until_ready(self):
        time.sleep(0.3)

    def enqueue(self, value):
        data = pickle.dumps(value, 5)
        at = mmap.PAGESIZE + self.word.value % self.SLOTS * self.PLACE
        self.memory[at:at + 8] = len(data).to_bytes(8, "little")
        self.memory[at + 8:at + 8 + len(data)] = data
        self.word.value += 1
        self.call(1, self.readers)

    def dequeue(self, indefinite):
        while self.word.value == self.read:
            self.call(0, self.read)
        at = mmap.PAGESIZE + self.read % self.SLOTS * self.PLACE
        self.read += 1
        length = int.from_bytes(self.memory[at:at + 8], "little")
        return pickle.loads(memoryview(self.memory)[at + 8:at + 8 + length])


class Copies:
    """SLOTS messages, and words in lines of their own: how many were written and the last one's
    length, the number of the end, how many each reader has read."""

    SLOTS, LINE = 10, 8                 # LINE: in words of 8 bytes

    def __init__(self, readers, _, max_chunk_bytes=0, max_chunks=0):
        self.place = max_chunk_bytes
        self.head = mmap.PAGESIZE * (1 + readers * 8 * self.LINE // mmap.PAGESIZE)
        self.memory = memoryview(mmap.mmap(-1, self.head + self.SLOTS * self.place))
        self.words = self.memory.cast("Q")
        self.mine, self.readers, self.at = 0, range(2, 2 + readers), 0

    def export_handle(self):
        return self

    @staticmethod
    def create_from_handle(handle, rank):
        handle.mine = (2 + rank) * handle.LINE
        return handle

    def wait_until_ready(self):
        time.sleep(0.3)

    def slot(self, length):
        at = self.head + self.at % self.SLOTS * self.place
        return slice(at, at + length)

    def enqueue(self, value):
        while self.at - min(self.words[p * self.LINE] for p in self.readers) >= self.SLOTS:
            os.sched_yield()
        self.at += 1
        if value is None:
            self.words[self.LINE] = self.at
        else:
            self.memory[self.slot(len(value[1]))] = value[1]
            self.words[1] = len(value[1])
        self.words[0] = self.at

    def dequeue(self, indefinite):
        while self.words[0] == self.at:
            os.sched_yield()
        self.at += 1
        if self.words[self.LINE] == self.at:
            return None
        data = bytes(self.memory[self.slot(self.words[1])])
        self.words[self.mine] = self.at
        return 0, data


def cpu():
    return time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)


def reader(kind, handle, rank, pipe):
    q = kind.create_from_handle(handle, rank)
    q.wait_until_ready()
    late, used, began = [], cpu(), time.monotonic()
    while True:
        value = q.dequeue(indefinite=True)
        if value is None:
            break
        late.append(time.monotonic_ns() - value[0])
    pipe.send((late, cpu() - used, time.monotonic() - began, time.monotonic_ns()))


def intervals(pace, seconds, seed):
    draw, at = random.Random(seed), 0.0
    while at < seconds:
        if pace == "burst":
            gaps = [draw.expovariate(1 / REST_S)] + [BURST_S] * (BURST - 1)
        else:
            gaps = [draw.expovariate(1000 / float(pace))]
        for gap in gaps:
            yield gap
            at += gap


def writer(kind, options, seed, pipe):
    context = multiprocessing.get_context("fork")
    q = kind(options.readers, options.readers, max_chunk_bytes=options.chunk, max_chunks=10)
    pairs = [context.Pipe() for _ in range(options.readers)]
    children = [context.Process(target=reader, args=(kind, q.export_handle(), rank, pairs[rank][1]))
                for rank in range(options.readers)]
    for child in children:
        child.start()
    q.wait_until_ready()
    data, used, began = b"x" * options.bytes, cpu(), time.monotonic_ns()
    if options.pace == "flood":
        for _ in range(options.messages):
            q.enqueue((0, data))
    else:
        for gap in intervals(options.pace, options.seconds, seed):
            time.sleep(gap)
            q.enqueue((time.monotonic_ns(), data))
    used = cpu() - used
    q.enqueue(None)
    got = [pair[0].recv() for pair in pairs]
    for child in children:
        child.join()
    took = (max(one[3] for one in got) - began) / 1e9
    pipe.send({
        "late": [max(ones) / 1e3 for ones in zip(*[one[0] for one in got])],
        "cpu": statistics.mean(one[1] / one[2] for one in got) * 100,
        "writer": used / took * 100, "rate": len(got[0][0]) / took})


def measure(kind, options, seed):
    context = multiprocessing.get_context("fork")
    ours, its = context.Pipe()
    process = context.Process(target=writer, args=(kind, options, seed, its))
    process.start()
    got = ours.recv()
    process.join()
    return got


def at(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def say(name, results, options):
    if options.pace == "flood":
        rates = sorted(one["rate"] for one in results)
        print(f"  {name:6} {statistics.median(rates):9.0f} messages/s  ({rates[0]:.0f} to "
              f"{rates[-1]:.0f})", flush=True)
        return [one["rate"] for one in results]
    late = [one for result in results for one in result["late"]]
    values = (statistics.mean(one["cpu"] for one in results), at(late, 0.5), at(late, 0.99))
    print(f"  {name:6} reader {values[0]:6.2f} %  writer "
          f"{statistics.mean(one['writer'] for one in results):5.2f} %  p50 {values[1]:7.0f} us  "
          f"p99 {values[2]:7.0f} us  ({len(late)} messages)", flush=True)
    return values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vllm")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--pace", default="5")
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--messages", type=int, default=0)
    options = parser.parse_args()
    options.messages = options.messages or (2000 if options.bytes > 4096 else 20000)
    # room for 10 messages on both sides, as far as tutti's rings can be so small
    options.chunk = options.bytes + 1024 if options.pace == "flood" else 24 << 20
    kinds = {"tutti": Ours}
    if options.vllm:
        kinds["vLLM"] = theirs(options.vllm)
    if options.floor and options.pace == "flood":
        kinds["copies"] = Copies
    elif options.floor:
        kinds["futex"] = Bare
    results = {name: [] for name in kinds}
    print(f"pace {options.pace}, {options.bytes} bytes, {options.readers} readers", flush=True)
    for n in range(options.rounds):
        for half, names in enumerate((list(kinds), list(reversed(kinds)))):
            for name in names:
                results[name].append(measure(kinds[name], options, 2 * n + half))
    values = {name: say(name, results[name], options) for name in kinds}
    for name in kinds:
        if name == "tutti":
            continue
        ratios = [a / b for a, b in zip(values["tutti"], values[name])]
        if options.pace == "flood":
            print(f"  tutti / {name} {statistics.median(ratios):.3f}  its turns, sorted: "
                  + " ".join(f"{ratio:.2f}" for ratio in sorted(ratios)), flush=True)
        else:
            print(f"  tutti / {name} " + ", ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
