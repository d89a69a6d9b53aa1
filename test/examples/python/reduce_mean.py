# SPDX-License-Identifier: MIT
# Shows: the mean over all ranks of what each has computed on its share: of a loss, of gradients,
# and of shares that are not equally large.
#
#     tutti run -n 3 python3 reduce_mean.py
import numpy as np
import tutti


def reduce_mean(value):
    """A number of this rank -> its mean over the ranks, the same bits on all of them."""
    x = np.array([value], "f8")
    return float(tutti.all_reduce(x, "avg")[0])


def mean_of_all(values):
    """The mean of every rank's samples, however many each has: sums and counts are added, not
    means averaged."""
    x = np.array([np.sum(values), len(values)], "f8")
    total, count = tutti.all_reduce(x)
    return float(total / count)


tutti.init()
rank, size = tutti.rank(), tutti.size()

loss = reduce_mean(1.0 / (rank + 1))
assert np.isclose(loss, np.mean([1.0 / (r + 1) for r in range(size)]))

samples = np.full(10 + rank, float(rank))               # uneven: rank r has 10 + r of them
mean = mean_of_all(samples)
assert np.isclose(mean, np.concatenate([np.full(10 + r, float(r)) for r in range(size)]).mean())

# The gradients of a model: several arrays by one operation, and the rank works on while they are
# on their way.
gradients = [np.full((64, 32), float(rank), "f4"), np.full(32, 2.0 * rank, "f4")]
work = tutti.all_reduce_many(gradients, "avg", async_=True)
samples = samples + mean                                # what does not need them yet
work.wait()
assert np.allclose(gradients[0], (size - 1) / 2) and np.allclose(gradients[1], size - 1)

if rank == 0:
    print(f"mean loss {loss:.4f}, mean of all samples {mean:.4f}, mean gradient "
          f"{gradients[0][0, 0]:g}")
