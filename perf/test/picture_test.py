"""The picture that perf/reports/picture.py takes out of a page, made up here."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree as tree

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "reports"))
import picture  # noqa: E402

FIGURE = """<figure>
<figcaption><b>%s</b>%%<ul class="legend"><li class="h0"><i></i>tutti 1 ns</li>\
<li class="h1"><i></i>MPI &amp; all 2 ns</li></ul></figcaption>
<svg viewBox="0 0 600 350" role="img" aria-label="x">
<g class="curve h0"><title>tutti 1 ns</title><path d="M%d 1"/></g>
</svg>
</figure>
"""
PAGE = """<html><style>:root{--ink:#000;--h0:#00f}
@media(prefers-color-scheme:dark){:root{--ink:#fff;--h0:#0ff}}</style>
""" + FIGURE % ("One", 1) + FIGURE % ("Two, beside &lt;others&gt;", 2) + """
<footer>a CPU, 2 CPUs · Linux 6 · C compiler 12 · tutti 0.9.0 (commit 01) · \
<code>tutti perf</code> · 2026-01-02 03:04</footer></html>"""


class Picture(unittest.TestCase):
    def setUp(self):
        self.svg = picture.picture(PAGE, "beside <others>")

    def test_it_is_an_svg_that_loads_nothing(self):
        tree.fromstring(self.svg)
        self.assertNotIn("href", self.svg)
        self.assertNotIn("url(", self.svg)

    def test_it_is_the_figure_that_was_asked_for(self):
        self.assertIn("M2 1", self.svg)
        self.assertNotIn("M1 1", self.svg)
        with self.assertRaises(SystemExit):
            picture.picture(PAGE, "three")

    def test_it_has_legend_machine_and_both_colours(self):
        texts = [t.text for t in tree.fromstring(self.svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts[1:], ["a CPU, 2 CPUs · Linux 6 · tutti 0.9.0 · 2026-01-02",
                                     "tutti 1 ns", "MPI & all 2 ns"])
        self.assertIn("svg{--ink:#000;--h0:#00f}", self.svg)
        self.assertIn("svg{--ink:#fff;--h0:#0ff}", self.svg)


if __name__ == "__main__":
    unittest.main()
