# SPDX-License-Identifier: MIT
"""The calls on buffers: what each takes on each side and passes to the library. As table.c.

A row ends with the arguments between the site and the comm: x, y the address of what is sent and
received, n, m their counts, b a block's count, N the bytes sent; X, Y the lists of addresses, A, B
of counts, z their length; t type, o operation or tag, r root or peer, g the message's struct.
"""
import ctypes
from typing import Any, Dict, List

from .binding import Call, Library, Message
from .side import BY_BUFFER, SIZES, Side

NOTHING, SOME, BLOCKS, LIST = range(4)

ROWS = [
    ("barrier", NOTHING, NOTHING, ""), ("broadcast", NOTHING, SOME, "ymtr"),
    ("reduce", SOME, SOME, "xyntor"), ("all_reduce", SOME, SOME, "xynto"),
    ("reduce_scatter", BLOCKS, SOME, "xymto"), ("all_gather", SOME, BLOCKS, "xynt"),
    ("gather", SOME, BLOCKS, "xyntr"), ("scatter", BLOCKS, SOME, "xymtr"),
    ("all_to_all", BLOCKS, BLOCKS, "xybt"), ("scan", SOME, SOME, "xynto"),
    ("exscan", SOME, SOME, "xynto"), ("same", SOME, NOTHING, "xN"),
    ("all_reduce_many", LIST, LIST, "XYAzto"), ("all_gather_v", SOME, LIST, "xnYBt"),
    ("gather_v", SOME, LIST, "xnYBtr"), ("scatter_v", LIST, SOME, "XAymtr"),
    ("reduce_scatter_v", LIST, SOME, "XAyto"), ("all_to_all_v", LIST, LIST, "XAYBt"),
    ("send", SOME, NOTHING, "xntro"), ("recv", NOTHING, SOME, "ymtrog"),
]
KINDS = {row[0]: i for i, row in enumerate(ROWS)}
BROADCAST, MANY, SCATTER_V, SEND, RECV, SAME = (KINDS[name] for name in (
    "broadcast", "all_reduce_many", "reduce_scatter_v", "send", "recv", "same"))
LOAD, SAVE = len(ROWS), len(ROWS) + 1

_IN_C: Dict[str, Any] = {letter: kind for letters, kind in (("xyXYABg", ctypes.c_void_p),
                                                            ("nmbN", ctypes.c_size_t),
                                                            ("torz", ctypes.c_int))
                         for letter in letters}


def declare(library: Library) -> None:
    for name, _, _, letters in ROWS:
        library.declare(name + "_at", [ctypes.c_void_p, *(_IN_C[letter] for letter in letters),
                                       ctypes.c_void_p, ctypes.c_void_p])


class Flight:
    """One call with what it holds, until it has ended."""

    def __init__(self, comm: Any, kind: int, result: Any, said: Any = None):
        self.comm, self.kind, self.result = comm, kind, result
        what = ROWS[kind][0] if kind < LOAD else "load" if kind == LOAD else "save"
        self.send, self.recv, self.factor = Side(what, said), Side(what, said), Side("factor")
        self.type = self.op = self.root = 0
        self.call = Call()
        self.handle = ctypes.c_void_p()
        self.got = Message()
        self.data, self.bytes = ctypes.c_void_p(), ctypes.c_size_t()
        self.late = 0.0   # with keep: its deadline, by time.monotonic(); 0: none
        self.taken = False              # a Work holds it
        self.folds = False              # by a program's own operation

    def take(self, send: Any, recv: Any, type: int, factor: Any) -> None:
        """Takes both sides and the factor, and checks them. If it raises, drop() releases them."""
        name, sends, recvs, _ = ROWS[self.kind]
        written = self.kind != BROADCAST or self.root != self.comm.rank
        (self.recv.take_list if recvs == LIST else self.recv.take)(recv, type, written)
        if send is recv and sends != LIST and recvs != LIST:
            self.send.lend(self.recv)
        else:
            (self.send.take_list if sends == LIST else self.send.take)(send, type, False)
        if BY_BUFFER not in (self.send.type, self.recv.type) and self.send.type != self.recv.type:
            raise TypeError(f"{name}: out has another type of elements than the array: give the "
                            "same")
        self.type = next((side.type for side in (self.send, self.recv) if side.type != BY_BUFFER),
                         1)
        (self._listed if LIST in (sends, recvs) else self._counted)(name, sends, recvs)
        if self.kind in (SEND, RECV) and (self.send.device or self.recv.device):
            raise ValueError(f"{name}: an array in device memory; messages are of host memory: "
                             "copy it")
        if factor is not None:
            self.factor.take(factor, self.type, False)
            if self.factor.count != 1 or self.factor.device:
                raise ValueError(f"factor: {self.factor.count} "
                                 f"elements{' on a device' if self.factor.device else ''}; "
                                 "expected one, of the array's type, in host memory")

    def stream(self) -> int:
        """The stream that the call waits for: the program's, else the one that an array names."""
        if self.send.said is not None:
            return self.send.said
        if self.send.stream and self.recv.stream and self.send.stream != self.recv.stream:
            raise ValueError(f"{ROWS[self.kind][0]}: the arrays are in use on two streams: say "
                             "stream=, and order the other before it")
        return self.send.stream or self.recv.stream

    def _counted(self, name: str, sends: int, recvs: int) -> None:
        size, send, recv = self.comm.size, self.send.count, self.recv.count
        if sends == BLOCKS and self.send.n and send % size:
            raise ValueError(f"{name}: the array has {send} elements, which cannot be divided "
                             f"among {size} ranks")
        should = send if sends == recvs else send // size if sends == BLOCKS else send * size
        if self.send.n and self.recv.n and recv != should:
            raise ValueError(f"{name}: out has {recv} elements; expected {should}")

    def _listed(self, name: str, sends: int, recvs: int) -> None:
        buffers = self.send.n if self.kind == MANY else self.comm.size
        for side, rule in ((self.send, sends), (self.recv, recvs)):
            if rule == LIST and side.n and side.n != buffers:
                raise ValueError(f"{name}: a list of {side.n} arrays; expected {buffers}")
        if self.kind == MANY and self.recv.counts != self.send.counts:
            is_, should = (next(((a, b) for a, b in zip(self.recv.counts, self.send.counts)
                                 if a != b), (0, 1)))
            raise ValueError(f"{name}: an array of out has {is_} elements; expected {should}")
        if (self.kind == SCATTER_V and self.send.n and self.send.counts[self.comm.rank]
            != self.recv.count):
            raise ValueError(f"{name}: out has {self.recv.count} elements; expected "
                             f"{self.send.counts[self.comm.rank]}")

    def arguments(self) -> List[Any]:
        send, recv = self.send, self.recv
        lists: Any = {}
        for letter, side in (("X", send), ("Y", recv)):
            lists[letter] = (ctypes.c_void_p * side.n)(*side.addresses) if side.n else None
        for letter, side in (("A", send), ("B", recv)):
            lists[letter] = (ctypes.c_size_t * side.n)(*side.counts) if side.n else None
        values = {"x": send.address, "y": recv.address, "n": send.count, "m": recv.count,
                  "b": send.count // self.comm.size, "N": send.count * SIZES[self.type],
                  "z": send.n, "t": self.type, "o": self.op, "r": self.root,
                  "g": ctypes.addressof(self.got), **lists}
        return [values[letter] for letter in ROWS[self.kind][3]]

    def value(self, result: int) -> Any:
        """The result of the call in Python."""
        if self.kind == SAME:
            return bool(result)
        if self.kind == RECV and self.result is not None:
            return self.result(self.got.from_, self.got.tag, self.got.count)
        if self.kind == LOAD:
            address, self.data = self.data.value, ctypes.c_void_p()
            return self.comm._show(address, self.bytes.value, True)
        return self.result

    def drop(self) -> None:
        for side in (self.send, self.recv, self.factor):
            side.drop()
        if self.data:                   # loaded, but not passed on
            self.comm._give_back(self.data.value)
            self.data = ctypes.c_void_p()
        self.result = None
