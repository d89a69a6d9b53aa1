# What the programs share: the backend asked for, a small net with exact sums, checks on numbers,
# the proof that tutti carried the data.
#
# Every rank runs a program, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set as torchrun sets
# them. TUTTI_TEST_BACKEND names the backend to ask for, gloo by default; TUTTI_AS_GLOO=1 puts tutti
# in gloo's place.
import os
from datetime import timedelta

import torch
import torch.distributed as dist

BACKEND = os.environ.get("TUTTI_TEST_BACKEND", "gloo")
TUTTI = BACKEND == "tutti" or os.environ.get("TUTTI_AS_GLOO") == "1"
if TUTTI:
    import _tutti_autoload
    import tutti.torch
    _tutti_autoload.register()                  # what `import torch` runs of an installed tutti


def begin():
    """The default group; this rank and the number of ranks."""
    torch.set_num_threads(1)
    dist.init_process_group(BACKEND, timeout=timedelta(seconds=60))
    return dist.get_rank(), dist.get_world_size()


def end(*groups):
    """The last of a program: tutti carried the default group's data and that of the groups given,
    or gloo was asked for."""
    carried(*groups)
    dist.barrier()
    dist.destroy_process_group()


def carried(*groups):
    if TUTTI:
        for group in (dist.group.WORLD, *groups):
            if group is not None and group is not dist.GroupMember.NON_GROUP_MEMBER:
                stats = tutti.torch.stats(group)
                check(stats["operations"] > 0,
                      f"tutti carried nothing of group {group.group_name}: {stats}")


def monitored_barrier(*args, **words):
    """torch's is for groups whose backend is named gloo; tutti has one of its own for
    the others."""
    (dist if BACKEND == "gloo" else tutti.torch).monitored_barrier(*args, **words)


# a complaint fits the driver's 40 lines
torch.set_printoptions(threshold=20, edgeitems=2, linewidth=120)


def check(holds, what=""):
    if not holds:
        raise AssertionError(what)


def same(got, expected, what=""):
    """Equal in type, shape and bits."""
    like = got.dtype == expected.dtype and got.shape == expected.shape
    check(like and torch.equal(got, expected), f"{what}: {got} is not {expected}")


def near(got, expected, what="", rtol=1e-12, atol=1e-12):
    check(got.dtype == expected.dtype and got.shape == expected.shape,
          f"{what}: {got} is not like {expected}")
    check(torch.allclose(got, expected, rtol=rtol, atol=atol),
          f"{what}: {got} is off {expected} by {(got - expected).abs().max()}")


# For Adam: it divides gradients by their size, and so blows up what rounding left of those that
# are nothing.
ADAM = {"rtol": 1e-6, "atol": 1e-6}


def exact(size):
    """same, or near where a mean over that many ranks is rounded."""
    return near if size & (size - 1) else same


def raises(kind, call, *args, **words):
    try:
        value = call(*args, **words)
    except kind as error:
        return error
    raise AssertionError(f"expected {kind}, got {value!r}")


# All of the net's numbers are small multiples of powers of two: two steps of training are exact in
# double precision, in any order.
STEPS = 2
RATE = 1 / 64


def integers(seed, *shape, dtype=torch.float64):
    made = torch.Generator().manual_seed(seed)
    return torch.randint(-2, 3, shape, generator=made).to(dtype)


def filled(module, seed=1):
    """The module with small integers for parameters."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(integers(seed * 100 + i, *parameter.shape))
    return module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 12)
        self.third = torch.nn.Linear(12, 4)

    def forward(self, x):
        return self.third(self.second(self.first(x).relu()).relu())


def net():
    return filled(Net().double())


def batch(rank, step=0, rows=4):
    """The inputs and the targets of a rank at a step."""
    return integers(1000 + 10 * step + rank, rows, 8), integers(2000 + 10 * step + rank, rows, 4)


def loss(model, x, y):
    return (model(x) * y).sum() / 4


def sgd(model, parameters=None):
    return torch.optim.SGD(parameters or model.parameters(), lr=RATE)


def fit(model, rank, steps=STEPS, optimizer=None):
    """Trains on this rank's batches."""
    optimizer = optimizer or sgd(model)
    for step in range(steps):
        loss(model, *batch(rank, step)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def alone(size, steps=STEPS, model=None, optimizer=None):
    """What one process trains on the batches of all ranks: the net's parameters by name."""
    model = model or net()
    optimizer = optimizer or sgd(model)
    for step in range(steps):
        (sum(loss(model, *batch(rank, step)) for rank in range(size)) / size).backward()
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def trained(state, size, what="", group=None, compare=None):
    """The state is what one process gets, and every rank has the same bits; names may have a
    wrapper's prefixes."""
    expected = alone(size)
    check(len(state) == len(expected), (what, list(state), list(expected)))
    for name, value in state.items():
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        (compare or exact(size))(value.detach(),
                                 expected[name.replace("module.", "").replace("_orig_mod.", "")],
                                 f"{what} {name}")
        alike(value.detach(), f"{what} {name}", group)


def alike(value, what="", group=None):
    """Every rank of the group has the same bits."""
    value = value.detach().contiguous()
    parts = [torch.empty_like(value) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, value, group=group)
    for part in parts:
        same(part, value, f"{what} on every rank")
