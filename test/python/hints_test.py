# The type hints can be asked for at run time, as documentation and checkers of arguments do, though
# the package loads no typing.
import concurrent.futures
import inspect
import typing
import unittest

from support import main, tutti
from tutti import vllm

MODULES = (tutti, tutti.comm, tutti.errors, tutti.work, tutti.world, vllm)


def functions():
    """(name, function) of all public ones, methods and properties too."""
    for module in MODULES:
        for name, thing in vars(module).items():
            if not inspect.isclass(thing):
                yield f"{module.__name__}.{name}", thing
                continue
            for word, method in vars(thing).items():
                yield f"{module.__name__}.{name}.{word}", getattr(method, "fget", method)


class Hints(unittest.TestCase):
    def test_every_function(self):
        seen = set()
        for name, function in functions():
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and function.__module__.startswith("tutti"):
                with self.subTest(name):
                    typing.get_type_hints(function)
                    inspect.signature(function, eval_str=True)
                    seen.add(name)
        self.assertTrue({"tutti.barrier", "tutti.init", "tutti.Comm.split", "tutti.vllm.Queue.get",
                         "tutti.Error.__init__", "tutti.Work.future",
                         "tutti.vllm.MessageQueue.enqueue"} <= seen, seen)

    def test_what_they_say(self):
        send = typing.get_type_hints(tutti.Comm.send)
        self.assertEqual(send["to"], int)
        self.assertEqual(send["timeout"], float | None)
        self.assertEqual(typing.get_type_hints(tutti.Comm.split)["return"], tutti.Comm | None)
        self.assertEqual(typing.get_type_hints(tutti.Error)["ranks"], tuple[int, ...])
        self.assertIs(typing.get_origin(typing.get_type_hints(tutti.Work.future)["return"]),
                      concurrent.futures.Future)


if __name__ == "__main__":
    main()
