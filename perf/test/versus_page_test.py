"""The table and the picture that perf/reports/versus.py makes, of figures made up here."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree as tree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "reports"))
import versus  # noqa: E402


def figure(what, contender, size, value, ratio=None, verdict=None):
    f = {"what": what, "contender": contender, "unit": "ns", "ranks": 2, "bytes": size,
         "value": value, "low": 0.9 * value, "high": 1.1 * value}
    if ratio:
        f |= {"ratio": ratio, "ratio_low": ratio - 0.02, "ratio_high": ratio + 0.02,
              "verdict": verdict}
    return f


def made_up(cpu="a <CPU>"):
    count = {"contender": "tutti", "unit": "count", "ranks": 0, "bytes": 0}
    return versus.Result({
        "machine": {"cpu": cpu, "cpus": 2, "system": "Linux 1"},
        "date": "2026-01-02 03:04",
        "figures": [
            count | {"what": "rounds", "value": 40}, count | {"what": "rounds dropped", "value": 3},
            count | {"what": "load", "value": 1.5},
            count | {"what": "line near", "value": 53.2},
            figure("broadcast near", "tutti", 4, 100),
            figure("broadcast near", "MPICH", 4, 300, 3.0, "ahead"),
            figure("broadcast near", "Intel MPI", 4, 90, 0.9, "behind"),
            figure("broadcast near", "Intel MPI", 65536, 3000, 0.61, "behind"),
            figure("broadcast near", "tutti", 65536, 4918),
            figure("broadcast near", "MPICH 5", 65536, 2000, 0.4, "unknown"),
            figure("scan far", "tutti", 4, 200),
            figure("scan far", "MPICH", 4, 210, 1.05, "level"),
        ],
        "remarks": [{"text": "version: tutti 0.1.0", "bad": False},
                    {"text": "version: MPICH 5 5.0.2", "bad": False},
                    {"text": "far, 2 ranks, 1 points: behind 0", "bad": False},
                    {"text": "near: 37 rounds", "bad": False},
                    {"text": "near, 2 ranks, 2 points: behind 2", "bad": False}]})


class Table(unittest.TestCase):
    def test_a_cell_counts_what_is_judged_and_names_the_worst(self):
        result = made_up()
        self.assertEqual(versus.cell(result, "broadcast", (2, "near")),
                         "**2** of 3; Intel MPI at 64KiB: 0.61 (0.59–0.63)")
        self.assertEqual(versus.cell(result, "scan", (2, "far")), "0 of 1")
        self.assertEqual(versus.cell(result, "scan", (2, "near")), "")

    def test_near_stands_before_far_and_the_setting_is_said(self):
        words = versus.section(made_up())
        self.assertIn("| behind | 2 ranks, near | 2 ranks, far |", words)
        for said in ("a <CPU>", "MPICH 5 5.0.2", "near 53 ns", "40 rounds, 3 of them", "1.5"):
            self.assertIn(said, words)

    def test_what_the_run_says_of_each_state_follows(self):
        self.assertEqual(versus.section(made_up()).splitlines()[-2:],
                         ["- near, 2 ranks, 2 points: behind 2",
                          "- far, 2 ranks, 1 points: behind 0"])

    def test_each_processor_has_its_own_place(self):
        self.assertEqual(made_up("AMD EPYC (family 25, model 1)").block(),
                         "versus family 25 model 1")
        self.assertEqual(made_up("AMD EPYC (family 25, model 17)").block(),
                         "versus family 25 model 17")
        self.assertEqual(made_up().block(), "versus")


class Picture(unittest.TestCase):
    def test_it_is_an_svg_that_loads_nothing(self):
        svg = versus.picture(made_up())
        tree.fromstring(svg)
        self.assertNotIn("href", svg)
        self.assertNotIn("url(", svg)
        self.assertEqual(svg.count('r="3.4"'), 2)             # behind
        self.assertEqual(svg.count("not measured"), 2)        # broadcast far, scan near

    def test_what_has_no_interval_is_not_drawn(self):
        result = made_up()
        for by in result.points["scan", 2, "far"].values():
            for f in by.values():
                del f["low"], f["high"]
        self.assertEqual(versus.picture(result).count("not measured"), 3)

    def test_faster_stands_lower_and_slower_ratios_are_cut(self):
        panel = versus.Panel(made_up(), ("broadcast", 2, "near"), 0, 0)
        self.assertGreater(panel.time_y(90), panel.time_y(3000))
        self.assertEqual(panel.ratio_y(1000), panel.ratio_y(versus.HIGHEST))
        self.assertLess(panel.column(4), panel.column(65536))


if __name__ == "__main__":
    unittest.main()
