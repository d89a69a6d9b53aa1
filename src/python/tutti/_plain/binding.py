# SPDX-License-Identifier: MIT
"""libtutti.so by ctypes: where it is, and the arguments of its functions."""
import ctypes
import os
import sysconfig
from typing import Any, List

SONAME = "libtutti.so.0"

_LETTERS = {"s": ctypes.c_void_p, "p": ctypes.c_void_p, "i": ctypes.c_int, "n": ctypes.c_size_t,
            "q": ctypes.c_int64, "Q": ctypes.c_uint64}

# The functions that have no row in calls.py. s: a call site, p: a pointer, i: an int, n: a size, q,
# Q: 64 bits. Before the colon: the type of the result, if it is not an int.
_FUNCTIONS = {
    "init": "pp", "finalize_at": "sp", "version": "p:", "rank": "p", "size": "p",
    "comm_split_at": "spiip", "comm_create_at": "sppip", "comm_shrink_at": "spp",
    "comm_agree_at": "spp", "comm_abort_at": "spp", "comm_free": "p", "failed": "ppi",
    "set_timeout": "pi", "wait_at": "spi", "test": "p", "once_at": "sppppp",
    "first_begin_at": "sppp", "first_end_at": "spip", "turn_begin_at": "spp", "turn_end_at": "sp",
    "seed_at": "Q:sQp", "set_at": "sppnp", "get_at": "sppppp", "add_at": "spqpp",
    "compare_set_at": "sppnpnp", "delete_at": "spp", "probe_at": "siippp", "alloc": "p:np",
    "free": "pp", "handle": "ppp", "view_readonly": "p:Qp", "load_at": "sppppp",
    "save_at": "sppnpp", "strerror": "p:i", "explain": "p:p", "fault": "pp", "stats": "pp",
    "op_create_at": "spipp", "op_free_at": "spp", "queue_create_at": "spipp",
    "queue_put_v_at": "spppip", "queue_look_at": "sppp", "queue_release": "pp", "queue_close": "p",
    "queue_free": "p", "queue_comm": "p:p", "queue_stats": "pp",
}


class Call(ctypes.Structure):
    """tutti_call"""

    _fields_ = [("timeout_ms", ctypes.c_int), ("flags", ctypes.c_uint), ("work", ctypes.c_void_p),
                ("stream", ctypes.c_void_p), ("factor", ctypes.c_void_p), ("done", ctypes.c_void_p),
                ("done_arg", ctypes.c_void_p), ("reserved", ctypes.c_uint64 * 4)]


class Options(ctypes.Structure):
    """tutti_options"""

    _fields_ = [("job", ctypes.c_char_p), ("rank", ctypes.c_int), ("size", ctypes.c_int),
                ("timeout_ms", ctypes.c_int), ("join_timeout_ms", ctypes.c_int),
                ("warn_ms", ctypes.c_int), ("spin_us", ctypes.c_uint), ("flags", ctypes.c_uint),
                ("span_bytes", ctypes.c_size_t), ("interrupt", ctypes.c_void_p),
                ("interrupt_arg", ctypes.c_void_p), ("progress", ctypes.c_void_p),
                ("progress_arg", ctypes.c_void_p), ("reserved", ctypes.c_uint64 * 4)]


class QueueOptions(ctypes.Structure):
    """tutti_queue_options"""

    _fields_ = [("room", ctypes.c_size_t), ("flags", ctypes.c_uint),
                ("reserved", ctypes.c_uint64 * 4)]


class QueueMessage(ctypes.Structure):
    """tutti_queue_message"""

    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("hold", ctypes.c_uint64)]


class Message(ctypes.Structure):
    """tutti_message"""

    _fields_ = [("from_", ctypes.c_int), ("tag", ctypes.c_int), ("count", ctypes.c_size_t)]


class Figures(ctypes.Structure):
    """tutti_figures"""

    NAMES = ("operations", "bytes", "wait_ns", "fold_ns", "waits", "sleeps", "compared",
             "came_last", "late_median_ns", "late_p99_ns", "late_cost_ns")
    _fields_ = [(name, ctypes.c_uint64) for name in NAMES] + [("reserved", ctypes.c_uint64 * 5)]


def _places() -> List[str]:
    """Folders to search: beside the package (pip), above it (the build folder), and the lib folders
    of the prefix where it is installed."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [folder]
    multiarch = sysconfig.get_config_var("MULTIARCH") or "none"
    for _ in range(5):
        folder = os.path.dirname(folder)
        places += [os.path.join(folder, name) for name in ("", "lib", "lib64",
                                                           os.path.join("lib", multiarch))]
    return places


class Library:
    """tutti_<name> of the library as an attribute. Each call releases the interpreter's lock."""

    def __init__(self) -> None:
        there = [path for path in (os.path.join(place, SONAME) for place in _places())
                 if os.path.exists(path)]
        try:
            self._dll = ctypes.CDLL(there[0] if there else SONAME)
        except OSError as error:
            raise OSError(f"tutti: {SONAME} is neither beside the package nor in its prefix, nor "
                          f"does the system find it: {error}") from None
        for name, text in _FUNCTIONS.items():
            kind, _, letters = text.rpartition(":")
            self.declare(name, [_LETTERS[letter] for letter in letters], _LETTERS[kind] if kind
                         else ctypes.c_int)

    def declare(self, name: str, arguments: List[Any], result: Any = ctypes.c_int) -> None:
        function = getattr(self._dll, "tutti_" + name)
        function.argtypes, function.restype = arguments, result
        setattr(self, name, function)

    def text(self, address: Any) -> str:
        return ctypes.string_at(address).decode(errors="replace") if address else ""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
