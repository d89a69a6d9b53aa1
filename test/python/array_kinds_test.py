# ctest: timeout=120
# Arrays that are not what their bytes say, in every call: what arrives is what a plain computation
# gives, or the call is refused with the reason, before anything is touched.
import array
import ctypes
import mmap
import os
import re
import tempfile

from support import Case, check, main, np, raises, tutti

SIZE = 2


class Lazy:
    """As pandas' and others' are: an array when it is asked for one, each time another."""

    shape = (SIZE,)

    def __array__(self, dtype=None, copy=None):
        return np.zeros(SIZE)


class Lender:
    """As torch's tensors are: lends its memory by DLPack, and knows what the bytes do not say."""

    def __init__(self, array, **says):
        self.array, self.shape = array, array.shape
        for name, value in says.items():
            setattr(self, name, lambda value=value: value)

    def __dlpack__(self, **words):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Subclass(np.ndarray):
    """No more than an array."""


class Big(ctypes.BigEndianStructure):
    _fields_ = [("a", ctypes.c_int32)]


def read_only(a):
    a.flags.writeable = False
    return a


def memmap():
    with tempfile.TemporaryFile() as file:
        file.truncate(8 * SIZE)
        return np.memmap(file, "f8", "r+", shape=SIZE)


REFUSED = {     # of any call that reads or writes the elements: how it is made; why
    "masked": (lambda: np.ma.masked_array(np.arange(2.0), [False, True]), "masked"),
    "masked, none of them": (lambda: np.ma.masked_array(np.arange(2.0)), "masked"),
    "objects": (lambda: np.array([1, 2], "O"), "Python objects"),
    "objects in a structure": (lambda: np.zeros(2, [("a", "f4"), ("b", "O")]), "Python objects"),
    "objects of ctypes": (lambda: (ctypes.py_object * 2)(1, 2), "Python objects"),
    "strings of any length": (lambda: np.array(["a", "b"], np.dtypes.StringDType()),
                              "Python objects"),
    "lazy": (Lazy, "perhaps a copy"),
    "lazy conjugate": (lambda: Lender(np.zeros(2, "c8"), is_conj=True),
                       r"lazy conjugate.*resolve_conj\(\)"),
    "lazy negative": (lambda: Lender(np.zeros(2), is_conj=False, is_neg=True),
                      r"lazy negative.*resolve_neg\(\)"),
    "repeated": (lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (0,)), "one piece"),
    "backwards": (lambda: np.arange(2.0)[::-1], "one piece"),
    "overlapping": (lambda: np.lib.stride_tricks.as_strided(np.zeros(3), (2, 2), (8, 8)),
                    "one piece"),
    "permuted": (lambda: np.zeros((2, 3)).T, "one piece"),
    "no array": (lambda: [1.0, 2.0], "no array"),
}
SWAPPED = {     # as REFUSED, but where the bytes are all that goes
    "swapped": (lambda: np.arange(2.0).astype(">f8"), "byte order"),
    "swapped in a structure": (lambda: np.zeros(2, [("a", ">f4"), ("b", ">i4")]), "byte order"),
    "swapped dates": (lambda: np.zeros(2, ">M8[s]"), "byte order"),
    "swapped of ctypes": (lambda: (Big * 2)(), "byte order"),
}
TYPED = {       # right by dtype=, without which they are refused: how, why, by which
    "dates": (lambda: np.array([3, 4], "M8[s]"), "datetime64.*dtype='i64'", "i64"),
    "spans of time": (lambda: np.array([3, 4], "m8[ms]"), "timedelta64.*dtype='i64'", "i64"),
    "structures": (lambda: np.array([(1, 2), (3, 4)], [("a", "i4"), ("b", "i4")]),
                   "no type of tutti", "u64"),
    "characters": (lambda: np.array([b"ab", b"cd"]), "no type of tutti", "u16"),
}
RIGHT = {
    "plain": lambda: np.arange(2.0),
    "a subclass": lambda: np.arange(2.0).view(Subclass),
    "a file's": memmap,
    "array.array": lambda: array.array("d", [0, 1]),
    "ctypes": lambda: (ctypes.c_double * 2)(0, 1),
    "a map": lambda: mmap.mmap(-1, 16),
    "memoryview": lambda: memoryview(bytearray(16)).cast("d"),
    "a lender": lambda: Lender(np.arange(2.0), is_conj=False, is_neg=False),
}


def lists(x):
    return [x] + [None] * (SIZE - 1)


def reads(world, x, **words):
    """Each call that takes x as what a rank gives, by name."""
    n, peer, out = world.size, (world.rank + 1) % world.size, np.zeros(1)
    return {
        "broadcast": lambda: world.broadcast(x, world.rank, **words),
        "all_reduce": lambda: world.all_reduce(x, out=out, **words),
        "reduce": lambda: world.reduce(x, root=world.rank, out=out, **words),
        "reduce_scatter": lambda: world.reduce_scatter(x, out=out, **words),
        "all_gather": lambda: world.all_gather(x, out=out, **words),
        "gather": lambda: world.gather(x, world.rank, out=out, **words),
        "scatter": lambda: world.scatter(x, out, world.rank, **words),
        "all_to_all": lambda: world.all_to_all(x, out=out, **words),
        "scan": lambda: world.scan(x, out=out, **words),
        "exscan": lambda: world.exscan(x, out=out, **words),
        "all_reduce_many": lambda: world.all_reduce_many([out, x], out=[out, out], **words),
        "all_gather_v": lambda: world.all_gather_v(x, [out] * n, **words),
        "gather_v": lambda: world.gather_v(x, [out] * n, world.rank, **words),
        "scatter_v": lambda: world.scatter_v(lists(x), out, world.rank, **words),
        "reduce_scatter_v": lambda: world.reduce_scatter_v(lists(x), out, **words),
        "all_to_all_v": lambda: world.all_to_all_v(lists(x), [out] * n, **words),
        "send": lambda: world.send(x, peer, **words),
    }


def writes(world, x, **words):
    """Each call that takes x for the result."""
    n, peer = world.size, (world.rank + 1) % world.size
    return {
        "broadcast": lambda: world.broadcast(x, peer, **words),
        "all_reduce": lambda: world.all_reduce(x, **words),
        "all_reduce's out": lambda: world.all_reduce(np.zeros(2), out=x, **words),
        "reduce": lambda: world.reduce(x, root=world.rank, **words),
        "reduce_scatter": lambda: world.reduce_scatter(np.zeros(2 * n), out=x, **words),
        "all_gather": lambda: world.all_gather(np.zeros(1), out=x, **words),
        "gather": lambda: world.gather(np.zeros(1), world.rank, out=x, **words),
        "scatter": lambda: world.scatter(None, x, peer, **words),
        "all_to_all": lambda: world.all_to_all(x, **words), "scan": lambda: world.scan(x, **words),
        "exscan": lambda: world.exscan(x, **words),
        "all_reduce_many": lambda: world.all_reduce_many([x], **words),
        "all_gather_v": lambda: world.all_gather_v(np.zeros(1), lists(x), **words),
        "gather_v": lambda: world.gather_v(np.zeros(1), lists(x), world.rank, **words),
        "scatter_v": lambda: world.scatter_v(None, x, peer, **words),
        "reduce_scatter_v": lambda: world.reduce_scatter_v(lists(np.zeros(1)), x, **words),
        "all_to_all_v": lambda: world.all_to_all_v(lists(np.zeros(1)), lists(x), **words),
        "recv": lambda: world.recv(x, peer, **words),
    }


def of_bytes(world, x):
    path = os.path.join(tempfile.gettempdir(), "tutti-kinds")
    return {"same": lambda: world.same(x), "save": lambda: world.save(path, x)}


def of_one(world, x):
    return {"set": lambda: world.set("k", x), "compare_set": lambda: world.compare_set("k", b"", x)}


def refused(calls, why, what):
    for name, call in calls.items():
        error = raises((ValueError, TypeError), call)
        check(re.search(why, str(error), re.DOTALL), (what, name, str(error)))


def all_refused(world):
    """Before anything is touched: the world goes on."""
    for name, (made, why) in {**REFUSED, **SWAPPED}.items():
        for words in ({}, {"dtype": "f64"}):
            refused(reads(world, made(), **words), why, (name, words))
            refused(writes(world, made(), **words), why, (name, words))
    for name, (made, why) in REFUSED.items():
        refused(of_bytes(world, made()), why, name)
        if name in ("masked", "objects", "objects in a structure"):
            refused(of_one(world, made()), why, name)
        if name not in ("repeated", "backwards", "overlapping", "permuted", "lazy conjugate",
                        "lazy negative", "lazy", "no array"):
            refused_by_root(world, made, why)
    for name, (made, why, _) in TYPED.items():
        refused(reads(world, made()), why, name)
        refused(writes(world, made()), why, name)
    refused(writes(world, read_only(np.zeros(2))), "read-only", "read-only")
    refused(writes(world, read_only(np.zeros(2, "M8[s]")), dtype="i64"), "read-only",
            "read-only dates")
    refused(writes(world, memoryview(bytes(16)).cast("d")), "read-only", "read-only view")
    refused(writes(world, np.broadcast_to(np.zeros(1), 2)), "read-only", "broadcast_to")
    factor = np.ma.masked_array(2.0)
    refused({"factor": lambda: world.all_reduce(np.zeros(2), "premul_sum", factor=factor)},
            "masked", "factor")
    world.barrier()


def refused_by_root(world, made, why):
    error = raises((ValueError, TypeError, MemoryError), world.share,
                   made() if world.rank == 0 else None)
    check(re.search(why, str(error)), str(error))


def all_right(world):
    """What moves, and what is folded, in arrays of each kind."""
    for name, made in RIGHT.items():
        for call in ("all_reduce", "broadcast", "recv"):
            x = made()
            view = np.frombuffer(x, "f8") if not isinstance(x, Lender) else x.array
            view[:] = [world.rank + 1, 7]
            words = {"dtype": "f64"} if name == "a map" else {}
            if call == "all_reduce":
                world.all_reduce(x, **words)
                expected = [3, 14]
            elif call == "broadcast":
                world.broadcast(x, 1, **words)
                expected = [2, 7]
            else:
                work = world.send(x, 1 - world.rank, async_=True, **words)
                got = made()
                world.recv(got, **words)
                work.wait()
                view = np.frombuffer(got, "f8") if not isinstance(got, Lender) else got.array
                expected = [2 - world.rank, 7]
            check(view.tolist() == expected, (name, call, view))
    for name, (made, _, dtype) in TYPED.items():
        expected = made()
        x = made() if world.rank == 0 else np.zeros_like(made())
        world.broadcast(x, dtype=dtype)
        check((x == expected).all(), (name, x))
        gathered = world.all_gather(x, dtype=dtype)
        check(gathered.dtype == x.dtype and (gathered == np.stack([expected] * SIZE)).all(),
              (name, gathered))
        check(world.same(x), name)
    dates = np.array([world.rank, 9 - world.rank], "M8[D]")
    world.all_reduce(dates, "max", dtype="i64")
    check((dates == np.array([1, 9], "M8[D]")).all(), dates)
    read = read_only(np.full(2, world.rank + 1.0))
    check(world.all_reduce(read, out=np.zeros(2)).tolist() == [3, 3], "read-only, to be read")
    check(world.same(np.arange(3, dtype=">f4")) and world.same(read_only(np.zeros(2, "m8[s]"))),
          "same")
    check(not world.same(np.full(2, world.rank, "M8[s]")), "not the same")


def share(world):
    """Any elements but objects, of any layout."""
    aligned = np.dtype([("a", "i1"), ("b", ">f8"), ("c", "M8[s]"), ("d", "f4", (2,))], align=True)
    for x in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(6)[::-2],
              np.array([1, 2], ">i4"), np.array(["2020-01-01"], "M8[D]"), np.array([5], "m8[us]"),
              np.array(["ab", "c"]), np.array([b"ab"]), np.zeros((2, 0), "c16"),
              np.ones(3, aligned), np.array(7.5), np.float32(3), np.datetime64("2020-01-01"),
              np.broadcast_to(np.arange(2), (3, 2)), np.array([True]), np.zeros(2, "V3"),
              np.arange(2.0).view(Subclass), np.rec.array([(1, 2.0)], "i4,f8")):
        got = world.share(x if world.rank == 0 else None)
        x = np.asarray(x)
        check(type(got) is np.ndarray and got.dtype == x.dtype and got.shape == x.shape
              and (got == x).all(), (x, got))
        raises(ValueError, setattr, got.flags, "writeable", True)
    for x in (b"abc", array.array("d", [1, 2]), (ctypes.c_int * 2)(1, 2),
              memoryview(b"abcdef")[::2], memoryview(bytearray(8)).cast("f", (2, 1))):
        got = world.share(x if world.rank == 0 else None)
        check(isinstance(got, memoryview) and got.readonly and got.shape == memoryview(x).shape
              and got.tobytes() == bytes(memoryview(x)), x)
    error = raises((TypeError, MemoryError), world.share, (Big * 1)() if world.rank == 0 else None)
    check("no memoryview" in str(error), str(error))


def files(world):
    with tempfile.TemporaryDirectory() as folder:
        path = world.share(os.path.join(folder, "x").encode() if world.rank == 0
                           else None).tobytes()
        for x in (np.array([1, 2], "M8[s]"), np.arange(3, dtype=">f4"), np.zeros(2, "S3"),
                  Lender(np.arange(3.0)), bytearray(b"abc")):
            world.save(path, x)
            check(bytes(world.load(path))
                  == bytes(memoryview(np.asarray(getattr(x, "array", x)).reshape(-1).view("u1"))),
                  x)
        raises(TypeError, world.save, path, None)
        world.barrier()


class Kinds(Case):
    def test_refused(self):
        self.ranks(SIZE, all_refused)

    def test_right(self):
        self.ranks(SIZE, all_right)

    def test_share(self):
        self.ranks(SIZE, share)

    def test_files(self):
        self.ranks(SIZE, files)


if __name__ == "__main__":
    main()
