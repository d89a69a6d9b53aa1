# SPDX-License-Identifier: MIT
# Shows: random numbers in a job. What all ranks must draw alike (the order of the data, the first
# weights) comes from the base itself; what each must draw for itself (dropout, noise, augmentation)
# from its own seed, which is fixed by (base, rank): run it again and it is the same.
#
#     tutti run -n 3 python3 seeds.py
import random

import numpy as np
import tutti

BASE = 1234

tutti.init()
rank, size = tutti.rank(), tutti.size()

# Alike: every rank shuffles alike and takes its share, so that each sample is seen by
# one rank, once.
order = np.random.default_rng(BASE).permutation(12)
mine = order[rank::size].copy()                       # in one piece
shares = [np.zeros(len(order[r::size]), order.dtype) for r in range(size)]
tutti.all_gather_v(mine, shares)
assert sorted(np.concatenate(shares).tolist()) == list(range(12))

# Apart: random, NumPy (and torch, where it is imported) at once.
seed = tutti.seed_everything(BASE)
noise = np.array([random.random(), np.random.rand()])
every = tutti.all_gather(noise)
assert len(
    set(every.ravel().tolist())) == 2 * size, "no two ranks, and no two generators, draw the same"

# The same again, as after a restart; and a generator of one's own from the same seed, which nobody
# else's calls disturb.
assert tutti.seed_everything(BASE) == seed
assert [random.random(), np.random.rand()] == noise.tolist()
own = np.random.default_rng(tutti.seed(BASE))

with tutti.turn():
    print(f"rank {rank}: seed {seed:016x}, samples {mine.tolist()}, noise {noise[0]:.4f} "
          f"{own.random():.4f}", flush=True)
