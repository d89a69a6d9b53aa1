# SPDX-License-Identifier: MIT
# Shows: "one rank prepares, the others use it", in two forms. The one is whichever rank comes
# first, and none of this is a barrier: a rank that never comes is not waited for, and if the one
# that prepares fails, the next one tries.
#
#     tutti run -n 3 python3 zero_first.py
import os
import tempfile

import numpy as np
import tutti


def prepare():
    """Stands for the work: a download, a tokenizer over the whole text. Counts itself, in the
    job's store."""
    tutti.add("prepared")
    return np.arange(100_000, dtype="i4") % 50_257


def load_once(cache):
    """Inside a job: the first rank prepares and leaves the result in a file; the others come when
    it is there, and read it."""
    with tutti.first("data set") as mine:
        if mine:
            np.save(cache, prepare())
    return np.load(cache, mmap_mode="r")


def load_cached(cache):
    """From job to job: who goes first looks whether an earlier job has left the file. It
    appears whole or not at all, so that one that was killed halfway leaves nothing that looks
    like a cache."""
    with tutti.first("cached data set") as mine:
        if mine and not os.path.exists(cache):
            np.save(cache + ".part.npy", prepare())
            os.replace(cache + ".part.npy", cache)
    return np.load(cache, mmap_mode="r")


tutti.init()
folder = bytes(tutti.share(tempfile.mkdtemp().encode() if tutti.rank() == 0 else None)).decode()

tokens = load_once(os.path.join(folder, "once.npy"))
for epoch in range(3):                                 # the second and third time the file is there
    cached = load_cached(os.path.join(folder, "cached.npy"))
assert tutti.same(tokens) and tutti.same(cached)

# A cache in a file costs each rank its read; where it need not outlive the job, one copy in memory
# serves all ranks.
with tutti.turn():
    print(f"rank {tutti.rank()} of {tutti.size()}: {len(tokens)} tokens, the last one is "
          f"{tokens[-1]}", flush=True)

tutti.barrier()
if tutti.rank() == 0:
    assert tutti.add("prepared", 0) == 2, "each form prepares once"
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
