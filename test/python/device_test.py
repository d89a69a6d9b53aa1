# ctest: timeout=120
# Arrays in device memory, by DLPack and by __cuda_array_interface__, on the driver of the tests:
# pointers go as they are, streams are heeded.
import ctypes
import mmap
import os
import sys

from support import Case, check, main, np, raises, skip, tutti
from tutti._dlpack_layout import Tensor, Versioned

BESIDE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(tutti.__file__))))
DRIVER = os.path.join(os.environ.get("TUTTI_BUILD", BESIDE), "fake_cuda")
if not os.path.exists(os.path.join(DRIVER, "libcuda.so.1")):
    skip(f"the tests' CUDA driver is not in {DRIVER}: build the target fake_cuda")
if DRIVER not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
    os.environ["LD_LIBRARY_PATH"] = DRIVER + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable, *sys.argv])


class Cuda:
    """The driver by its own names: cuda.cuMemAlloc_v2(…) or a complaint."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.cuInit(0)
        self.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.cuCtxSetCurrent(context)

    def __getattr__(self, name):
        function = getattr(self.driver, name)

        def call(*args):
            error = function(*args)
            check(error == 0, (name, error))
        return call

    def copy(self, to, source, bytes_):
        self.cuMemcpyAsync(ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(bytes_),
                           None)
        self.cuStreamSynchronize(None)

    def stream(self):
        made = ctypes.c_void_p()
        self.cuStreamCreate(ctypes.byref(made), 1)
        return made.value


class Device:
    """An array on the device with the contents of a NumPy array."""

    def __init__(self, cuda, array):
        self.cuda, self.like, self.shape = cuda, array, array.shape
        self.address = ctypes.c_uint64()
        self.asked = []
        cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(array.nbytes, 1)))
        if array.nbytes:
            cuda.copy(self.address.value, array.ctypes.data, array.nbytes)

    def read(self):
        got = np.empty_like(self.like)
        if got.nbytes:
            self.cuda.copy(got.ctypes.data, self.address.value, got.nbytes)
        return got


class Interface(Device):
    def __init__(self, cuda, array, read_only=False, **words):
        super().__init__(cuda, array)
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str,
                                         "data": (self.address.value, read_only), "version": 3,
                                         **words}


class Dlpack(Device):
    code = 2

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        self.edges = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor = Tensor(self.address.value, 2, 0, len(self.shape), self.code,
                         8 * self.like.itemsize, 1,
                         ctypes.cast(self.edges, ctypes.POINTER(ctypes.c_int64)), None, 0)
        self.managed = Versioned(1, 0, None, None, 0, tensor)
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                                ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)

    def __dlpack_device__(self):
        return 2, 0


def total(world):
    return world.size * (world.size + 1) / 2


def reduces(world):
    cuda = Cuda()
    for made in (Interface, Dlpack):
        for n in (0, 3, 100_000):
            mine = made(cuda, np.full(n, world.rank + 1, "f4"))
            check(world.all_reduce(mine) is mine, "in place")
            check((mine.read() == total(world)).all(), (made, n, mine.read()[:3]))
            work = world.all_reduce(mine, "avg", async_=True)
            check(work.wait() is mine and (mine.read() == total(world)).all(),
                  "the mean of the same")


def mixes(world):
    """One rank's array on the device, the other's in host memory; send there, out here."""
    cuda = Cuda()
    mine = np.full(1000, world.rank + 1.0)
    array = Interface(cuda, mine) if world.rank == 0 else mine
    world.all_reduce(array)
    got = array.read() if world.rank == 0 else array
    check((got == total(world)).all(), got[:3])
    out = np.zeros((world.size, 2))
    world.all_gather(Dlpack(cuda, np.full(2, float(world.rank))), out=out)
    check(out[:, 0].tolist() == list(range(world.size)), out)
    many = [Interface(cuda, np.full(n, 1.0, "f4")) for n in (1, 50)]
    world.all_reduce_many(many)
    check(all((one.read() == world.size).all() for one in many), "many")
    check(world.same(Dlpack(cuda, np.arange(7.0))) is True, "the same")


def types_that_numpy_lacks(world):
    cuda = Cuda()
    mine = Dlpack(cuda, (np.array([1.5 * (world.rank + 1)], "f4").view("u4") >> 16).astype("u2"))
    mine.code = 4
    world.all_reduce(mine)
    check((mine.read().astype("u4") << 16).view("f4")[0] == 1.5 * total(world), mine.read())
    world.all_reduce(Interface(cuda, np.zeros(4, "u2")), dtype="bf16")
    world.all_reduce(Interface(cuda, np.zeros(4, "V2")), dtype="bf16")


def streams(world):
    """What was put into the stream before the call is in the result."""
    cuda = Cuda()
    stream = cuda.stream()
    filled = np.full(500_000, world.rank + 1.0)
    memory = mmap.mmap(-1, filled.nbytes)
    memory.write(filled.tobytes())
    pinned = ctypes.c_void_p(np.frombuffer(memory).ctypes.data)
    cuda.cuMemHostRegister_v2(pinned, ctypes.c_size_t(filled.nbytes), 0)

    def fill(array):
        cuda.cuMemcpyAsync(array.address, pinned, ctypes.c_size_t(filled.nbytes),
                           ctypes.c_void_p(stream))
        return array
    zeros = np.zeros_like(filled)
    mine = fill(Interface(cuda, zeros))
    world.all_reduce(mine, stream=stream)                               # as the program says
    check((mine.read() == total(world)).all(), "stream=")
    mine = fill(Interface(cuda, zeros, stream=stream))
    world.all_reduce(mine)                                              # as the array says
    check((mine.read() == total(world)).all(), "the array's stream")
    mine = Dlpack(cuda, zeros)
    world.all_reduce(mine, stream=stream)
    world.all_reduce(mine)
    world.all_reduce(mine, stream=0)
    check(mine.asked == [stream, 1, 1], mine.asked)      # the stream that DLPack's producer is told


def refuses(world):
    cuda = Cuda()
    x = np.zeros((4, 4))
    one, other = Interface(cuda, x, stream=cuda.stream()), Interface(cuda, x, stream=cuda.stream())
    for kind, text, call, args, words in (
            (tutti.Invalid, "in one piece", world.all_reduce,
             (Interface(cuda, x, strides=(8, 32)),), {}),
            (tutti.Invalid, "read-only", world.all_reduce, (Interface(cuda, x, read_only=True),),
             {}),
            (tutti.Invalid, "masked", world.all_reduce, (Interface(cuda, x, mask=x),), {}),
            (TypeError, "no type of tutti", world.all_reduce, (Interface(cuda, x.view("V8")),), {}),
            (TypeError, "byte order", world.all_reduce, (Interface(cuda, x.astype(">f8")),), {}),
            (TypeError, "byte order", world.all_reduce, (Interface(cuda, x.astype(">f8")),),
             {"dtype": "f64"}),
            (ValueError, "two streams", world.all_reduce, (one,), {"out": other}),
            (ValueError, "two streams", world.all_reduce_many, ([one, other],), {}),
            (ValueError, "host memory", world.send, (one, 0), {}),
            (ValueError, "host memory", world.recv, (one,), {}),
            (ValueError, "in host memory", world.all_reduce, (x, "premul_sum"),
             {"factor": Interface(cuda, np.ones(1))}),
            (TypeError, "out=", world.all_gather, (Interface(cuda, x),), {})):
        check(text in str(raises(kind, call, *args, **words)), (text, words))
    world.all_reduce(one, out=other, stream=one.__cuda_array_interface__["stream"])
    world.barrier()


class Devices(Case):
    def test_reductions(self):
        self.ranks(2, reduces)

    def test_beside_host_memory(self):
        self.ranks(2, mixes)

    def test_types_that_numpy_lacks(self):
        self.ranks(2, types_that_numpy_lacks)

    def test_streams(self):
        self.ranks(2, streams)

    def test_refusals(self):
        self.ranks(2, refuses)


if __name__ == "__main__":
    main()
