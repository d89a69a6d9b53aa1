# ctest: timeout=60
# Python's integers and seconds have no end, C's have: of every argument of every method what does
# not fit is refused, never cut.
import inspect
import math
import unittest

from support import main, np, tutti

world = tutti.init()
ME, N = world.rank, world.size

# What the other arguments are.
OTHERS = {"array": np.zeros(N), "arrays": [np.zeros(1)] * N, "out": [np.zeros(1)] * N,
          "function": lambda in_, inout: None, "path": "no/such/file", "data": b"", "to": 0,
          "color": 0, "base": 0}
OUT = {"scatter": np.zeros(1), "scatter_v": np.zeros(1), "reduce_scatter_v": np.zeros(1)}

INT, LONG, SIZE = (-1 << 31, (1 << 31) - 1), (-1 << 63, (1 << 63) - 1), (0, (1 << 64) - 1)
RANGES = {("add", "delta"): LONG, ("seed", "base"): (LONG[0], SIZE[1]),
          ("seed_everything", "base"): (LONG[0], SIZE[1])}


def others(name, method):
    """The arguments that a call of the method must have."""
    needed = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty
              and p.name != "self"]
    words = {word: OTHERS.get(word, f"{name}: a key") for word in needed}
    if "out" in words and name in OUT:
        words["out"] = OUT[name]
    if "timeout" in inspect.signature(method).parameters:
        words["timeout"] = 0.2
    return words


def arguments(kind):
    """(method's name, method, argument) of all arguments that are said to be of this kind."""
    for name, method in inspect.getmembers(tutti.Comm, inspect.isfunction):
        if not name.startswith("_"):
            for parameter in inspect.signature(method).parameters.values():
                if kind(parameter):
                    yield name, method, parameter.name


class Numbers(unittest.TestCase):
    def refused(self, kind, text, call, *args, **words):
        with self.assertRaisesRegex(kind, text):
            call(*args, **words)

    def test_every_integer(self):
        tried = set()
        for name, method, word in arguments(lambda p: p.annotation in ("int", "int | None")
                                            and p.name != "stream"):
            low, high = RANGES.get((name, word), INT)
            for number in (low - 1, high + 1, low - (1 << 64), high + 1 + (1 << 64), 1 << 5000):
                with self.subTest(method=name, argument=word, number=number.bit_length()):
                    self.refused(tutti.Invalid, f"{word}.* is .*: expected an integer from {low} "
                                                f"to {high}", method, world,
                                 **{**others(name, method), word: number})
            tried.add((name, word))
        self.assertTrue({("send", "to"), ("send", "tag"), ("recv", "from_"), ("recv", "tag"),
                         ("probe", "tag"), ("broadcast", "root"), ("split", "color"),
                         ("split", "key"), ("agree", "flag"), ("add", "delta"), ("seed", "base")}
                        <= tried, tried)
        self.refused(tutti.Invalid, "a rank is", world.create, [0, 1 << 32])

    def test_every_stream(self):
        for name, method, word in arguments(lambda p: p.name == "stream"):
            for number in (-1, 1 << 64):
                with self.subTest(method=name, number=number):
                    self.refused(ValueError, f"{name}: stream is {number}", method, world,
                                 **{**others(name, method), word: number})

    def test_every_timeout(self):
        for name, method, word in arguments(lambda p: p.name == "timeout"):
            for seconds in (math.nan, 1e300, 2147484):
                with self.subTest(method=name, seconds=seconds):
                    self.refused(tutti.Invalid, "timeout is .*: expected seconds, at most 2147483",
                                 method, world, **{**others(name, method), word: seconds})
        for seconds in (math.nan, 1e300):
            self.refused(tutti.Invalid, "timeout is", tutti.init, timeout=seconds)
            self.refused(tutti.Invalid, "timeout is", tutti.init, join_timeout=seconds)
            self.refused(tutti.Invalid, "timeout is", tutti.spawn, print, 1, timeout=seconds)
            work = world.barrier(async_=True)
            self.refused(tutti.Invalid, "timeout is", work.wait, seconds)
            work.wait(math.inf)

    def test_options_of_init(self):
        for word, number in (("rank", 1 << 32), ("size", (1 << 32) + 1), ("spin_us", (1 << 32) + 1),
                             ("span_bytes", (1 << 64) + 65536)):
            self.refused(tutti.Invalid, f"{word} is {number}", tutti.init,
                         **{"job": f"numbers-{ME}", "size": 1, word: number})

    def test_texts_that_c_would_cut(self):
        self.refused(ValueError, "null", tutti.init, job="a\0b", rank=0, size=1)
        self.refused(ValueError, "null", world.load, "no/such\0file")
        self.refused(ValueError, "null", world.save, "no/such\0file", b"")
        self.refused(ValueError, "null", world.set, "a\0b", b"")
        self.refused(ValueError, "null", world.abort, "a\0b")

    def test_factors_that_are_none(self):
        self.refused(tutti.Invalid, "factor is 2.5", world.all_reduce, np.ones(1, "i4"),
                     "premul_sum", factor=2.5)
        self.assertEqual(world.all_reduce(np.ones(1, "i4"), "premul_sum", factor=2.0)[0], 2 * N)
        self.refused(tutti.Invalid, "flag is 1.5", world.agree, 1.5)

    def test_ends_of_the_ranges(self):
        """What fits goes through as it is, and what is an integer to Python is one here."""
        got = np.zeros(1)
        work = world.recv(got, (ME - 1) % N, INT[1], async_=True)
        world.send(np.full(1, float(ME)), np.int64((ME + 1) % N), INT[1])
        self.assertEqual(work.wait(), ((ME - 1) % N, INT[1], 1))
        self.assertEqual(world.agree(INT[0]), INT[0])
        self.assertEqual(world.agree(INT[1]), INT[1])
        self.assertEqual(world.agree(np.bool_(True)), 1)
        self.assertEqual(world.seed(-1), world.seed(SIZE[1]))
        key = f"number of {ME}"
        self.assertEqual([world.add(key, LONG[1]), world.add(key, -LONG[1]),
                          world.add(key, LONG[0])], [LONG[1], 0, LONG[0]])
        half = world.split(np.int32(INT[1]), INT[0] + ME)
        self.assertEqual((half.rank, half.size), (ME, N))
        half.set_timeout(2147483)
        half.barrier(timeout=math.inf)
        half.free()


if __name__ == "__main__":
    main()
