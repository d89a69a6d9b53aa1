"""A program for hang_test.sh: the last rank stays in its own Python code."""

import tutti

world = tutti.init()
world.barrier()
while world.rank == 2:
    pass
world.barrier()
