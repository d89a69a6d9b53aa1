# Hosts on one machine: each is a set of namespaces (net, uts, ipc, pid, mount) with a name, an
# address, a /dev/shm of its own; a bridge joins them, in a network namespace of its own, the wire.
# What a rank calls is forked from this process, so torch is imported once.
import atexit
import ctypes
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
import traceback

NEWNS, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
KILLED = -9


def _unshared(flags):
    if _libc.unshare(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _with_parent():
    """This process ends with the one that made it."""
    _libc.prctl(1, signal.SIGKILL)


def _ran(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


def refusal():
    """Why there can be no hosts here; "": there can."""
    pid = os.fork()
    if pid == 0:
        try:
            _unshared(NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET)
            inner = os.fork()           # it is the init of the new pids: the last one to go there
            if inner:
                os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) != 0)
            _ran("mount", "--make-rprivate", "/")
            _ran("mount", "-t", "proc", "proc", "/proc")
            _ran("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
            _ran("ip", "link", "add", "three", "type", "bridge")
            os._exit(0)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            os._exit(1)
    return "" if os.waitpid(pid, 0)[1] == 0 else "namespaces or their links are not allowed here"


class _Pipe:
    """Objects from one process to another."""

    def __init__(self):
        self.read, self.write = os.pipe()

    def put(self, it):
        data = pickle.dumps(it)
        os.write(self.write, struct.pack("I", len(data)) + data)

    def get(self):
        def exactly(n):
            data = b""
            while len(data) < n:
                more = os.read(self.read, n - len(data))
                if not more:
                    raise EOFError("the other side is gone")
                data += more
            return data
        return pickle.loads(exactly(struct.unpack("I", exactly(4))[0]))


class Host:
    """One host. Its init forks ranks and tells how they ended."""

    def __init__(self, hosts, number):
        self.name, self.address = "abc"[number], f"10.77.0.{number + 1}"
        self.orders, self.answers = _Pipe(), _Pipe()
        self.outer = os.fork()
        if self.outer == 0:
            self._outer()
        self.pid = self.answers.get()
        wire = ("nsenter", "-t", str(hosts.wire), "-n")
        self.port = f"port{number}"
        _ran(*wire, "ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0",
             "netns", str(self.pid))
        _ran(*wire, "ip", "link", "set", self.port, "master", "bridge", "up")
        self.orders.put(None)
        self.answers.get()

    def _outer(self):
        """Makes the namespaces; that of pids is for its child."""
        try:
            _with_parent()
            _unshared(NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET)
            inner = os.fork()
            if inner:
                self.answers.put(inner)
                os.waitpid(inner, 0)
                os._exit(0)
            _with_parent()
            _ran("mount", "--make-rprivate", "/")
            _ran("mount", "-t", "proc", "proc", "/proc")
            for folder in ("/dev/shm", "/run"):
                _ran("mount", "-t", "tmpfs", "tmpfs", folder)
            _ran("hostname", self.name)
            self.orders.get()
            _ran("ip", "link", "set", "lo", "up")
            _ran("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
            _ran("ip", "link", "set", "eth0", "up")
            os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
            self.answers.put("up")
            self._init()
        except BaseException:
            traceback.print_exc()
        os._exit(1)

    def _init(self):
        while True:
            ranks, body, args = self.orders.get()
            pids = {}
            for rank in ranks:
                pid = os.fork()
                if pid == 0:
                    try:
                        body(rank, *args)
                        status = 0
                    except SystemExit as end:
                        status = end.code or 0
                    except BaseException:
                        traceback.print_exc()
                        status = 1
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(status)
                pids[pid] = rank
            ends, left = {}, set(pids)
            while left:
                pid, status = os.waitpid(-1, os.WUNTRACED)
                if pid in left and os.WIFSTOPPED(status):
                    ends[pids[pid]] = "stopped"
                    left.discard(pid)
                elif pid in left:
                    ends[pids[pid]] = os.waitstatus_to_exitcode(status)
                    left.discard(pid)
            self.answers.put(ends)
            self.orders.get()           # all hosts are done: now the stopped ranks may go
            for pid in pids:
                if ends[pids[pid]] == "stopped":
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def begin(self, ranks, body, *args):
        self.orders.put((ranks, body, args))

    def ends(self, until):
        if not select.select([self.answers.read], [], [], max(0, until - time.monotonic()))[0]:
            sys.stdout.flush()
            sys.stderr.write(f"a rank of host {self.name} hangs\n")
            os._exit(1)                 # the hosts end with this process
        return self.answers.get()


class Hosts:
    """n hosts and the wire between them."""

    def __init__(self, n):
        ready = _Pipe()
        self.wire = os.fork()
        if self.wire == 0:
            try:
                _with_parent()
                _unshared(NEWNET)
                _ran("ip", "link", "add", "bridge", "type", "bridge")
                _ran("ip", "link", "set", "bridge", "up")
                ready.put("up")
                signal.pause()
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        ready.get()
        atexit.register(self.close)
        self._mine = os.getpid()
        self.all = []
        for number in range(n):
            self.all.append(Host(self, number))

    def close(self):
        """Ends every process of every host, by the end of each init."""
        if os.getpid() != self._mine:
            return
        for pid in [host.pid for host in self.all]:
            os.kill(pid, signal.SIGKILL)
        for pid in [host.outer for host in self.all]:
            os.waitpid(pid, 0)
        os.kill(self.wire, signal.SIGKILL)
        os.waitpid(self.wire, 0)
        self.all, self._mine = [], -1

    def link(self, number, state):
        """up or down"""
        _ran("nsenter", "-t", str(self.wire), "-n", "ip", "link", "set", self.all[number].port,
             state)

    def bytes(self, number):
        """from and to a host, by its port"""
        with open(f"/proc/{self.wire}/net/dev") as file:
            for line in file:
                if line.strip().startswith(self.all[number].port + ":"):
                    words = line.split(":")[1].split()
                    return int(words[0]), int(words[8])
        raise OSError("no such port")

    def run(self, per_host, body, *args, meanwhile=None, limit=60):
        """body(rank, *args) by so many ranks on each host: a number, or a list of numbers. How each
        rank ended."""
        until = time.monotonic() + limit
        if isinstance(per_host, int):
            per_host = [per_host] * len(self.all)
        for number, host in enumerate(self.all):
            first = sum(per_host[:number])
            host.begin(list(range(first, first + per_host[number])), body, *args)
        if meanwhile:
            meanwhile()
        ends = {}
        for host in self.all:
            ends.update(host.ends(until))
        for host in self.all:
            host.orders.put(None)
        return [ends[rank] for rank in sorted(ends)]


def waited(path, limit=30):
    """Until a rank has made this file."""
    end = time.monotonic() + limit
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise OSError(f"nobody made {path}")
        time.sleep(0.005)
