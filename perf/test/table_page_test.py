"""The table that perf/reports/table.py makes, of promises made up here, and where it is put."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "reports"))
import marked  # noqa: E402
import table  # noqa: E402

WAIT = "CPU burnt in a wait of 100 ms"


def promise(what, value, kept, limit=1.5, must="at least", unit="ratio"):
    return {"what": what, "unit": unit, "must": must, "limit": limit, "value": value,
            "kept": kept}


def made_up(*promises):
    return {"machine": {"cpu": "a CPU", "cpus": 2, "system": "Linux 1.2-3 x86_64"},
            "date": "2026-01-02 03:04", "promises": list(promises),
            "remarks": [{"text": "MPICH 4.0.2: defaults", "bad": False},
                        {"text": "a cache line takes 40 ns", "bad": False}]}


def lines(*files):
    return table.Table(list(files)).section().split("\n")


class Rows(unittest.TestCase):
    def test_one_kind_shares_a_row_in_the_order_of_ranks_and_a_missed_one_is_bold(self):
        file = made_up(promise(f"4 ranks: {WAIT}", 153e3, False, 150e3, "at most", "ns"),
                       promise(f"8 ranks: {WAIT}", 99e3, True, 150e3, "at most", "ns"),
                       promise(f"{WAIT}, 2 ranks", 118e3, True, 150e3, "at most", "ns"))
        self.assertEqual(lines(file)[-1],
                         f"| {WAIT}, 2; 4; 8 ranks | ≤ 150 µs | 118; **153**; 99 |")

    def test_a_promise_that_no_row_knows_has_its_own(self):
        self.assertEqual(lines(made_up(promise("dogs / cats", 12345, True)))[-1],
                         "| dogs / cats | ≥ 1.5 | 12.3k |")

    def test_what_was_not_measured_is_neither_kept_nor_missed(self):
        found = lines(made_up(promise("a", None, None), promise("b", 2, True)))
        self.assertEqual(found[-2:], ["| a | ≥ 1.5 | – |", "| b | ≥ 1.5 | 2.00 |"])
        self.assertEqual(found[0], "a CPU, 2 CPUs, Linux 1.2, MPICH 4.0.2, 2026-01-02; a cache "
                                   "line takes 40 ns. 1 of 1 are kept.")

    def test_the_operation_that_is_worst_may_differ_between_files(self):
        found = lines(made_up(promise("others, 2, worst: MPI / scan", 0.9, False, 1)),
                      made_up(promise("others, 2, worst: MPI / reduce", 1.1, True, 1)))
        self.assertEqual(found[-1], "| MPI / other collectives, worst; median of sizes | ≥ 1 "
                                    "| **0.90** | 1.10 |")


class Place(unittest.TestCase):
    def test_it_takes_the_place_of_the_old_one_only(self):
        text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"
        self.assertEqual(marked.put(text, "a", r"new \1"),
                         "before\n<!-- a -->\nnew \\1\n<!-- /a -->\nafter\n")
        with self.assertRaises(ValueError):
            marked.put(text, "b", "new")


if __name__ == "__main__":
    unittest.main()
