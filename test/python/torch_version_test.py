# ctest: timeout=180 labels=nosan
# How torch comes to know the backend: by its entry points, by an import, by neither; and what
# torch's other backends notice of it: nothing.
import os
import subprocess
import sys
import tempfile

from torch_support import Case, check, dist, main, raises, torch, tutti

PROGRAM = """
import torch, torch.distributed as dist
{before}
dist.init_process_group("{backend}", init_method="file://{path}", rank=0, world_size=1)
group = dist.group.WORLD
x = torch.ones(3)
dist.all_reduce(x)
print(dist.get_backend(), group._get_backend(torch.device("cpu")).name(), not group._has_hooks())
dist.destroy_process_group()
"""


def program(backend, before="", **environment):
    """What a program of its own prints; its error's last line where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        text = PROGRAM.format(before=before, backend=backend, path=os.path.join(folder, "store"))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", text],
                              env={**os.environ, **environment}, capture_output=True, text=True,
                              timeout=100)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def two_plugins(rank, size):
    dist.Backend.register_backend("stranger", lambda *args: None, devices=["cpu"])
    error = raises(ValueError, dist.new_group, backend="cpu:tutti,cuda:stranger")
    check("stranger" in str(error) and "tutti" in str(error), error)


class Versions(Case):
    def test_no_import(self):
        self.assertEqual(program("tutti"), "tutti tutti True")

    def test_a_device_of_it(self):
        self.assertEqual(program("cpu:tutti"), "cpu:tutti tutti True")

    def test_switched_off(self):
        """Since 2.14 torch has a second way to the name, which that variable does not touch."""
        said = program("tutti", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.assertIn("tutti", said)
        self.assertEqual(said == "tutti tutti True", torch.__version__ >= (2, 14))
        self.assertEqual(program("tutti", "import tutti.torch", TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
                         "tutti tutti True")

    def test_others_as_before(self):
        for backend in ("gloo", "cpu:gloo"):
            for load in "01":
                self.assertEqual(program(backend, TORCH_DEVICE_BACKEND_AUTOLOAD=load),
                                 f"{backend} gloo True")

    def test_nothing_breaks_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_tutti_autoload.py"), "w") as file:
                with open(sys.modules["_tutti_autoload"].__file__) as ours:
                    file.write(ours.read().replace("def put() -> None:",
                                                   "def put() -> None:\n"
                                                   "    raise LookupError('on purpose')\n\n\n"
                                                   "def unused() -> None:"))
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            self.assertEqual(program("gloo", PYTHONPATH=path), "gloo gloo True")

    def test_two_plugins(self):
        self.ranks(2, two_plugins)

    def test_gloo_untouched(self):
        self.assertIs(dist.ProcessGroupGloo, torch._C._distributed_c10d.ProcessGroupGloo)
        self.assertTrue(torch.__version__ and tutti.__version__)


if __name__ == "__main__":
    main()
