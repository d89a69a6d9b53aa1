# ctest: timeout=120
# Arrays that speak DLPack, or say where they lie by __cuda_array_interface__, in host memory: what
# is taken, what is refused.
import ctypes
import gc
import weakref

from support import Case, main, np, tutti
from tutti._dlpack_layout import Tensor, Versioned

world = tutti.init(timeout=60)
N, ME = world.size, world.rank

CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                            ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Old:
    """A NumPy array that speaks DLPack as of before 1.0, and no buffer protocol."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, stream=None):
        if stream is not None:
            raise AssertionError("a stream for host memory")
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class New:
    """The same by version 1.0, made by hand: any type, any strides, read-only, on any device."""

    def __init__(self, array, code=None, read_only=False, device=1, strides="own", lanes=1,
                 major=1, offset=0):
        self.array, self.shape, self.device = array, array.shape, device
        n = array.ndim
        self.edges = (ctypes.c_int64 * n)(*array.shape)
        if strides == "own":
            strides = [stride // array.itemsize for stride in array.strides]
        self.steps = (ctypes.c_int64 * n)(*strides) if strides is not None else None
        pointer = ctypes.POINTER(ctypes.c_int64)
        tensor = Tensor(array.ctypes.data - offset, device, 0, n, CODES[array.dtype.kind]
                         if code is None else code, 8 * array.itemsize, lanes,
                         ctypes.cast(self.edges, pointer), ctypes.cast(self.steps, pointer)
                         if self.steps is not None else None, offset)
        self.managed = Versioned(major, 0, None, None, 1 if read_only else 0, tensor)

    def __dlpack__(self, *, stream=None, max_version=None):
        assert max_version is not None
        return CAPSULE(ctypes.addressof(self.managed), b"dltensor_versioned", None)

    def __dlpack_device__(self):
        return self.device, 0


class Dlpack(Case):
    def test_old_and_new(self):
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8",
                      "c8", "c16"):
            for made in (Old, New):
                with self.subTest(dtype=dtype, made=made):
                    mine = np.full((2, 3), ME + 1, dtype)
                    foreign = made(mine)
                    self.assertIs(world.all_reduce(foreign), foreign)
                    np.testing.assert_array_equal(mine, np.full((2, 3), N * (N + 1) // 2, dtype))
        mine = np.array([ME == 0, True])
        world.all_reduce(New(mine), "land")
        self.assertEqual(mine.tolist(), [N == 1, True])

    def test_beside_numpy(self):
        out = np.zeros((N, 2))
        world.all_gather(New(np.full(2, float(ME))), out=out)
        self.assertEqual(out[:, 0].tolist(), list(range(N)))
        mine = np.full((N, 2), 1.0)
        got = np.zeros(2)
        world.reduce_scatter(Old(mine), out=New(got))
        self.assertEqual(got.tolist(), [N, N])
        parts = [np.zeros(1) for _ in range(N)]
        world.all_gather_v(New(np.full(1, float(ME))), [Old(part) for part in parts])
        self.assertEqual([part[0] for part in parts], list(range(N)))

    def test_types_that_numpy_lacks(self):
        bf16 = np.array([1.5 * (ME + 1)], "f4").view("u4") >> 16
        mine = bf16.astype("u2")
        world.all_reduce(New(mine, code=4))                             # bfloat16
        self.assertEqual((mine.astype("u4") << 16).view("f4")[0], 1.5 * N * (N + 1) / 2)
        for code, one, name in ((10, 0x38, "f8e4m3"), (12, 0x3c, "f8e5m2")):
            mine, same = np.array([one], "u1"), np.array([one], "u1")
            world.all_reduce(New(mine, code=code))
            world.all_reduce(same, dtype=name)
            self.assertEqual(mine[0], same[0])
            self.assertEqual(mine[0] == one, N == 1)

    def test_layouts(self):
        """Strides may be left out, or be anything where an edge is 1; the data may begin somewhere
        behind the pointer."""
        for words in ({"strides": None}, {"strides": [3, 77, 1]}, {"offset": 48}, {"device": 3}):
            mine = np.full((2, 1, 3), ME + 1.0)
            world.all_reduce(New(mine, **words))
            self.assertEqual(mine[1, 0, 2], N * (N + 1) / 2)
        world.all_reduce(New(np.zeros((0, 4)), strides=[1, 1]))
        world.broadcast(New(np.full((), 3.0)))

    def test_read_only(self):
        mine = np.full(2, ME + 1.0)
        out = np.zeros(2)
        world.all_reduce(New(mine, read_only=True), out=out)
        self.assertEqual(out[0], N * (N + 1) / 2)
        world.broadcast(New(mine, read_only=ME == 0))                  # the root's own array may be
        self.assertEqual(mine[0], 1)

    def test_held_while_under_way(self):
        other = world.split(0)
        mine = Old(np.full(1000, ME + 1.0))
        array, held = mine.array, weakref.ref(mine.array)
        if ME == 0:
            work = other.all_reduce(mine, async_=True)
            del mine, array
            gc.collect()
            self.assertIsNotNone(held())
            world.barrier()
            self.assertEqual(work.wait().array[0], N * (N + 1) / 2)
            del work
            gc.collect()
            self.assertIsNone(held())
        else:
            world.barrier()
            other.all_reduce(mine)
        other.free()

    def test_letters(self):
        got = np.zeros(2, "i4")
        world.send(New(np.array([ME, 7], "i4")), (ME + 1) % N)
        world.recv(New(got))
        self.assertEqual(got.tolist(), [(ME - 1) % N, 7])

    def test_same_and_factor(self):
        self.assertIs(world.same(New(np.arange(5))), True)
        mine = np.full(2, 1.0)
        world.all_reduce(New(mine), "premul_sum", factor=New(np.array([2.0])))
        self.assertEqual(mine[0], 2 * N)
        mine = np.full(2, 1.0)
        world.all_reduce(New(mine), "premul_sum", factor=3.0)
        self.assertEqual(mine[0], 3 * N)


class Refusals(Case):
    """Found before anything is touched."""

    def refused(self, kind, text, call, *args, **words):
        with self.assertRaisesRegex(kind, text):
            call(*args, **words)

    def test_refusals(self):
        x = np.zeros((4, 4))
        self.refused(tutti.Invalid, "in one piece", world.all_reduce, New(x[:, 1]))
        self.refused(tutti.Invalid, "in one piece", world.all_reduce, New(x.T))
        self.refused(tutti.Invalid, "read-only", world.all_reduce, New(x, read_only=True))
        self.refused(tutti.Invalid, "type 7 of DLPack", world.all_reduce, New(x, device=7))
        self.refused(tutti.Invalid, "DLPack 2.0; expected 1", world.all_reduce, New(x, major=2))
        self.refused(TypeError, "no type of tutti", world.all_reduce, New(x, lanes=4))
        self.refused(TypeError, "no type of tutti", world.all_reduce, New(x, code=9))
        self.refused(TypeError, "dtype has 2 bytes an element, the array 8", world.all_reduce,
                     New(x), dtype="f16")
        self.refused(ValueError, "give one by out=|no array like", self._all_gather_foreign)
        self.refused(tutti.Invalid, "stream", world.all_reduce, x, stream=5)
        self.refused(TypeError, "no array.*DLPack", world.all_reduce, object())
        world.barrier()

    def _all_gather_foreign(self):
        try:
            world.all_gather(New(np.zeros(2)))
        except TypeError as error:
            raise ValueError(str(error))


if __name__ == "__main__":
    main()
