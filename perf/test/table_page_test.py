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
            "version": "tutti 1", "date": "2026-01-02 03:04", "promises": list(promises),
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


    def test_what_had_few_rounds_says_so(self):
        few = promise("a", 2, True) | {"few": True}
        self.assertEqual(lines(made_up(few, promise("b", 2, True)))[-4:],
                         ["| a | ≥ 1.5 | 2.00 ? |", "| b | ≥ 1.5 | 2.00 |", "",
                          "?: of fewer rounds than such a figure takes."])


class Together(unittest.TestCase):
    def test_of_several_runs_it_is_the_median_held_against_the_limit(self):
        found = lines(table.together([made_up(promise("a", 2, True), promise("b", None, None)),
                                      made_up(promise("a", 1, False)),
                                      made_up(promise("a", 1.2, False), promise("b", 3, True))]))
        self.assertEqual(found[-2:], ["| a | ≥ 1.5 | **1.20** |", "| b | ≥ 1.5 | 3.00 |"])
        self.assertIn("1 of 2 are kept", found[0])

    def test_few_rounds_are_enough_in_one_of_them(self):
        few, enough = promise("a", 2, True) | {"few": True}, promise("a", 3, True)
        self.assertIn("2.00 ?", lines(table.together([made_up(few), made_up(few)]))[-3])
        self.assertIn("2.50 |", lines(table.together([made_up(few), made_up(enough)]))[-1])

    def test_looks_at_the_line_are_added_up(self):
        one, two = made_up(promise("a", 2, True)), made_up(promise("a", 2, True))
        for file, said in ((one, "50 ns one way, 40 to 60 in 4 looks: near in 4, far in 0"),
                           (two, "90 ns one way, 41 to 260 in 4 looks: near in 2, far in 2")):
            file["remarks"][1]["text"] = f"a cache line took {said}"
        self.assertIn("; a cache line took 70 ns one way, 40 to 260 in 8 looks: near in 6, far "
                      "in 2. 1 of 1", lines(table.together([one, two]))[0])

    def test_runs_of_two_machines_are_refused(self):
        other = made_up(promise("a", 2, True))
        other["machine"]["cpu"] = "another"
        with self.assertRaises(SystemExit):
            table.together([made_up(promise("a", 2, True)), other])


class Place(unittest.TestCase):
    def test_it_takes_the_place_of_the_old_one_only(self):
        text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"
        self.assertEqual(marked.put(text, "a", r"new \1"),
                         "before\n<!-- a -->\nnew \\1\n<!-- /a -->\nafter\n")
        with self.assertRaises(ValueError):
            marked.put(text, "b", "new")


if __name__ == "__main__":
    unittest.main()
