# ctest: timeout=240 labels=nosan
# The same program by `tutti run`, by torchrun, by torch.multiprocessing, and by hand.
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from torch_support import check, dist, main, torch

PROGRAM = """
import os, sys
import torch, torch.distributed as dist
import tutti.torch

torch.set_num_threads(1)
dist.init_process_group("tutti")
x = torch.ones(1) * dist.get_rank()
dist.all_reduce(x)
assert x.item() == sum(range(dist.get_world_size())), x
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {x.item()}", flush=True)
if len(sys.argv) > 1 and dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
dist.barrier()
dist.destroy_process_group()
"""


def spawned(rank, size, method):
    dist.init_process_group("tutti", init_method=method, rank=rank, world_size=size)
    tensor = torch.ones(1) * rank
    dist.all_reduce(tensor)
    check(tensor.item() == sum(range(size)), tensor)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.folder.name, "program.py")
        with open(self.program, "w") as file:
            file.write(PROGRAM)
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                                            "LOCAL_RANK")}

    def tearDown(self):
        self.folder.cleanup()

    def run_it(self, *command, **more):
        return subprocess.run(command, env={**self.environment, **more}, capture_output=True,
                              text=True, timeout=100)

    def test_tutti_run(self):
        command = os.path.join(os.environ.get("TUTTI_BUILD", ""), "tutti")
        if not os.path.exists(command):
            self.skipTest("TUTTI_BUILD is not set: no command tutti")
        done = self.run_it(command, "run", "-n", "2", sys.executable, self.program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 0 of 2: 1.0", done.stdout)
        self.assertIn("rank 1 of 2: 1.0", done.stdout)
        done = self.run_it(command, "run", "-n", "2", sys.executable, self.program, "die")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1", done.stderr)

    def test_torchrun(self):
        out = os.path.join(self.folder.name, "log")
        done = self.run_it(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                           "--master_port", str(free_port()), "-r", "0:1", "-t", "0:1", "--log_dir",
                           out, self.program, OMP_NUM_THREADS="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of 2: 1.0", done.stdout + done.stderr)

    def test_multiprocessing(self):
        torch.multiprocessing.spawn(spawned, args=(2, f"file://{self.folder.name}/store"), nprocs=2)

    def test_by_hand(self):
        """Two processes and a TCP store on loopback."""
        environment = {**self.environment, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(free_port())}
        ranks = [subprocess.Popen([sys.executable, self.program],
                                  env={**environment, "RANK": str(rank)}, stdout=subprocess.PIPE,
                                  text=True)
                 for rank in range(2)]
        said = [rank.communicate(timeout=100)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertEqual(said, ["rank 0 of 2: 1.0\n", "rank 1 of 2: 1.0\n"])


if __name__ == "__main__":
    main()
