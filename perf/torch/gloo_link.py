# How long one message of gloo takes over a link with delay, from rank 0 on one host to rank 1 on
# another, by which of both calls first. If a sender of gloo waits until it has heard that the
# receiver is ready, it is one delay only where the receiver called a delay or more before.
#
#     PYTHONPATH=build/release/python build/venv/bin/python perf/torch/gloo_link.py
#         [--delay MICROSECONDS] [--times N]
#
# Both hosts are this machine, and have its clock: both calls are made at moments agreed before.
# Medians, from the later of both calls to the message's arrival.
import argparse
import datetime
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/python"))
import hosts_support  # noqa: E402
from slow_link import SlowLink  # noqa: E402
from torch_support import dist, torch  # noqa: E402

APART = 0.02                            # seconds; far more than any delay that is asked for


def wait_until(moment):
    time.sleep(max(0, moment - time.monotonic() - 0.002))
    while time.monotonic() < moment:
        pass


def messages(rank, times):
    torch.set_num_threads(1)
    store = dist.TCPStore("10.78.0.1", 29700, 2, rank == 0,
                          timeout=datetime.timedelta(seconds=30))
    gloo = dist.ProcessGroupGloo
    options = gloo._Options()
    options._timeout = datetime.timedelta(seconds=30)
    options._devices = [gloo.create_device(interface="slow0")]
    group = gloo(store, rank, 2, options)
    data = torch.zeros(1)
    for name, first in (("the receiver long before", 1), ("both at once", None),
                        ("the sender long before", 0)):
        took = []
        for i in range(times):
            if rank == 0:
                store.set(f"{name}{i}", str(time.monotonic() + APART))
            begin = float(store.get(f"{name}{i}"))
            wait_until(begin + (APART if first == 1 - rank else 0))
            work = group.send([data], 1, i) if rank == 0 else group.recv([data], 0, i)
            work.wait()
            took.append(time.monotonic() - begin - (0 if first is None else APART))
        if rank == 1:
            print(f"  {name}: {statistics.median(took) * 1e6:.0f} us "
                  f"({min(took) * 1e6:.0f} to {max(took) * 1e6:.0f})", flush=True)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--delay", type=int, default=1000)
    ask.add_argument("--times", type=int, default=20)
    how = ask.parse_args()
    hosts = hosts_support.Hosts(2)
    link = SlowLink(hosts, how.delay)
    print(f"{how.delay} us of delay one way, 4 bytes by gloo; which called first:", flush=True)
    ends = hosts.run(1, messages, how.times, limit=100)
    link.close()
    hosts.close()
    sys.exit(any(ends))


if __name__ == "__main__":
    main()
