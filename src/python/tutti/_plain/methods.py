# SPDX-License-Identifier: MIT
"""The methods of a comm that take no buffers: order, the store, questions without a wait, a
program's own operations. As methods_*.c and ops.c."""
import ctypes
import errno
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import inside
from .binding import Call, Figures, Message
from .side import SIZES

_FOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

with_ops: "weakref.WeakSet[Any]" = weakref.WeakSet()


def text_of(words: Union[str, bytes]) -> bytes:
    """The text for C. C reads to the first byte 0, so a text with one is refused."""
    text = words.encode() if isinstance(words, str) else words
    if b"\0" in text:
        raise ValueError("embedded null character")
    return text


class Methods:
    _raised: Optional[BaseException]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    # ---- what is known without a wait ----

    @property
    def rank(self) -> int:
        """This rank's number in the comm, 0 to size - 1."""
        return self._library.rank(self._open())

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._library.size(self._open())

    @property
    def is_world(self) -> bool:
        """Whether it came from init()."""
        return self._world is None

    @property
    def report(self) -> str:
        """The last failure of this rank on the comm, in words; '' if none."""
        return self._library.text(self._library.explain(self._open()))

    def failed(self) -> Tuple[int, ...]:
        """The ranks known to be dead or gone, ascending, as a tuple."""
        size = self.size
        ranks = (ctypes.c_int * size)()
        return tuple(ranks[:max(0, self._library.failed(self._handle, ranks, size))])

    def stats(self) -> Dict[str, int]:
        """This rank's figures since the comm began, by the names of tutti_figures, and of its last
        collectives, `compared` of them, how often and by how much it came last: came_last,
        late_median_ns, late_p99_ns, late_cost_ns. Times in ns."""
        figures = Figures()
        self._check(self._library.stats(self._open(), ctypes.byref(figures)))
        return {name: int(getattr(figures, name)) for name in Figures.NAMES}

    def _set_timeout(self, ms: int) -> None:
        self._check(self._library.set_timeout(self._open(), ms))

    def _fault(self, what: str) -> None:
        self._check(self._library.fault(self._open(), text_of(what)))

    def _abort(self, why: str) -> None:
        self._check(self._library.comm_abort_at(inside.site(), self._open(), text_of(why)))

    def _agree(self, flag: int) -> int:
        word = ctypes.c_int(flag)
        self._check(self._run("comm_agree_at", inside.site(), self._open(), ctypes.addressof(word)))
        return word.value

    # ---- order ----

    def _once(self, key: str, function: Callable[[], Any], timeout_ms: int) -> Tuple[bool, Any]:
        ends: List[Any] = []
        call = Call(timeout_ms)
        shielded = inside.shielded(function, ends)
        result = self._run("once_at", inside.site(), text_of(key),
                           ctypes.cast(shielded, ctypes.c_void_p), None, self._open(),
                           ctypes.addressof(call))
        if ends and ends[0][1] is not None:
            raise ends[0][1]
        self._check(result)
        return bool(ends), ends[0][0] if ends else None

    def _first_begin(self, key: str, timeout_ms: int) -> bool:
        call, site = Call(timeout_ms), inside.site()

        def undo(result: int) -> None:
            if result == 1:
                self._library.first_end_at(site, text_of(key), -errno.EINTR, self._handle)
        return bool(self._check(self._run("first_begin_at", site, text_of(key), self._open(),
                                          ctypes.addressof(call), undo=undo)))

    def _first_end(self, key: str, error: int) -> None:
        result = self._library.first_end_at(inside.site(), text_of(key), error, self._open())
        if result != error:
            self._check(result)

    def _turn_begin(self, timeout_ms: int) -> None:
        call, site = Call(timeout_ms), inside.site()

        def undo(result: int) -> None:
            if result >= 0:
                self._library.turn_end_at(site, self._handle)
        self._check(self._run("turn_begin_at", site, self._open(), ctypes.addressof(call),
                              undo=undo))

    def _turn_end(self) -> None:
        self._check(self._library.turn_end_at(inside.site(), self._open()))

    def _seed(self, base: int) -> int:
        return self._library.seed_at(inside.site(), base, self._open())

    # ---- the store ----

    def _set(self, key: str, value: Any) -> None:
        data = bytes(value)
        self._check(self._run("set_at", inside.site(), text_of(key), data, len(data), self._open()))

    def _get(self, key: str, timeout_ms: int) -> bytes:
        """Tries a small buffer first. If the value is longer, tries again with the length that the
        library gave."""
        call, site, room = Call(timeout_ms), inside.site(), 256
        while True:
            value, length = ctypes.create_string_buffer(max(1, room)), ctypes.c_size_t(room)
            result = self._run("get_at", site, text_of(key), value, ctypes.addressof(length),
                               self._open(), ctypes.addressof(call))
            if result != -errno.EMSGSIZE or length.value <= room:
                self._check(result)
                return value.raw[:length.value]
            room = length.value

    def _add(self, key: str, delta: int) -> int:
        now = ctypes.c_int64()
        self._check(self._run("add_at", inside.site(), text_of(key), delta, ctypes.addressof(now),
                              self._open()))
        return now.value

    def _compare_set(self, key: str, expected: Any, desired: Any) -> bool:
        old, new = bytes(expected), bytes(desired)
        return bool(self._check(self._run("compare_set_at", inside.site(), text_of(key), old,
                                          len(old), new, len(new), self._open())))

    def _delete(self, key: str) -> bool:
        result = self._run("delete_at", inside.site(), text_of(key), self._open())
        if result != -errno.ENOENT:
            self._check(result)
        return result == 0

    def _probe(self, from_: int, tag: int, timeout_ms: int) -> Tuple[int, int, int]:
        call, got = Call(timeout_ms), Message()
        self._check(self._run("probe_at", inside.site(), from_, tag, ctypes.addressof(got),
                              self._open(), ctypes.addressof(call)))
        return got.from_, got.tag, got.count

    # ---- operations of a program's own ----

    def _op_create(self, function: Callable[[memoryview, memoryview, int], Any]) -> int:
        here = weakref.ref(self)

        def fold(in_: int, inout: int, count: int, type: int) -> None:
            comm = here()
            if comm is None or comm._raised is not None:
                return
            try:
                views = [
                    memoryview((ctypes.c_ubyte * (count * SIZES[type])).from_address(at)).cast("B")
                    for at in (in_, inout)]
                function(views[0].toreadonly(), views[1], type)
            except BaseException as error:
                comm._raised = error
                words = f"its own operation raised {type_of(error).__name__}: {error}"
                comm._library.comm_abort_at(inside.site(), comm._handle,
                                            words.replace("\0", "?").encode())
        for_c, number = _FOLD(fold), ctypes.c_int()

        def undo(result: int) -> None:
            if result >= 0:
                self._library.op_free_at(None, ctypes.addressof(number), self._handle)
        self._check(self._run("op_create_at", inside.site(), ctypes.cast(for_c, ctypes.c_void_p), 1,
                              ctypes.addressof(number), self._open(), undo=undo))
        self._ops[number.value] = for_c
        with_ops.add(self)
        return number.value

    def _op_free(self, number: int) -> None:
        word = ctypes.c_int(number)
        self._check(self._library.op_free_at(inside.site(), ctypes.addressof(word), self._open()))
        self._ops.pop(number, None)


type_of = type


def ops_close() -> None:
    """From now on no function runs. At its end Python would end a thread that waits for the
    interpreter's lock, inside the library."""
    for comm in list(with_ops):
        if comm._handle and comm._flying:
            comm._library.comm_abort_at(None, comm._handle,
                                        b"its program has ended, and its own operation with it")
            for flight in list(comm._flying):
                flight.taken = False
            comm._reap(True)
