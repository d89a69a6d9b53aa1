# SPDX-License-Identifier: MIT
# perf/relay: what it hands on is whole and in order, and is late by its delay at least.
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/python"))
import hosts_support  # noqa: E402

DELAY_MS, MEMORY = 20, bytes(range(256)) * 4096


def connected(rank):
    if rank == 1:
        with socket.create_server(("10.78.0.2", 7000)) as door:
            return door.accept()[0]
    while True:
        try:
            return socket.create_connection(("10.78.0.2", 7000))
        except ConnectionRefusedError:
            time.sleep(0.005)


def talk(rank):
    with connected(rank) as other:
        if rank == 0:
            begun = time.monotonic()
            other.sendall(b"x")
            assert other.recv(1) == b"x"
            assert time.monotonic() - begun >= 2 * DELAY_MS / 1000, "it was too early"
            other.sendall(MEMORY)
            other.shutdown(socket.SHUT_WR)
            return
        other.sendall(other.recv(1))
        got = b"".join(iter(lambda: other.recv(1 << 16), b""))
        assert got == MEMORY, f"{len(got)} bytes came, or others"


def main():
    why = hosts_support.refusal() or ("" if os.path.exists("/dev/net/tun") else "no /dev/net/tun")
    if why:
        print(why)
        return 77
    hosts = hosts_support.Hosts(2)
    words = [word for number, host in enumerate(hosts.all)
             for word in (str(host.pid), f"10.78.0.{number + 1}")]
    relay = subprocess.Popen([sys.argv[1], str(DELAY_MS * 1000), *words], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    if relay.stdout.readline() != b"ready\n":
        print("there can be no interface of TUN here")
        return 77
    ends = hosts.run(1, talk)
    relay.stdin.close()
    ends.append(relay.wait())
    hosts.close()
    return any(ends)


if __name__ == "__main__":
    sys.exit(main())
