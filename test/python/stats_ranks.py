# ctest: timeout=60
# A rank's figures, and how often it came last.
from support import Case, main, tutti

world = tutti.init(timeout=40)
N, ME = world.size, world.rank
NAMES = ("operations", "bytes", "wait_ns", "fold_ns", "waits", "sleeps", "compared", "came_last",
         "late_median_ns", "late_p99_ns", "late_cost_ns")
ROUNDS = 20


class Stats(Case):
    def test_the_last_one_knows_it(self):
        """The last rank comes when the others have said that they are there."""
        comm, words = world.split(0), world.split(0)
        for _ in range(ROUNDS):
            if ME == N - 1:
                for p in range(N - 1):
                    words.recv(bytearray(1), p)
                comm.barrier()
            else:
                work = comm.barrier(async_=True)
                words.send(b"x", N - 1)
                work.wait()
        world.barrier()
        figures = comm.stats()
        self.assertEqual(tuple(figures), NAMES)
        self.assertTrue(all(type(value) is int for value in figures.values()), figures)
        self.assertEqual((figures["operations"], figures["compared"]), (ROUNDS, ROUNDS))
        late = ME == N - 1
        self.assertEqual(figures["came_last"], ROUNDS if late else 0)
        self.assertEqual(figures["late_median_ns"] > 0, late)
        self.assertLessEqual(figures["late_median_ns"], figures["late_p99_ns"])
        self.assertLessEqual(figures["late_p99_ns"], figures["late_cost_ns"])
        world.barrier()

    def test_of_the_world(self):
        world.barrier()
        self.assertEqual(tuple(tutti.stats()), NAMES)
        self.assertGreater(tutti.stats()["operations"], 0)

    def test_of_no_comm(self):
        freed = world.split(0)
        freed.free()
        with self.assertRaises(ValueError):
            freed.stats()


if __name__ == "__main__":
    main()
