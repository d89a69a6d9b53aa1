# SPDX-License-Identifier: MIT
"""Takes a figure out of a page of `tutti perf`, as a picture that stands by itself.

    tutti perf barrier -n 2 --html page.html
    picture.py page.html "beside those of other systems" perf/barrier.svg

Title and legend of the figure are drawn into it, and the page's colours, for light and dark.
"""

import html
import pathlib
import re
import sys

TOP, ROW, ACROSS = 46, 18, 3  # above the figure: the title, then the legend, so many in a row


def picture(page, wanted):
    """The first figure whose title has the words."""
    colours = re.findall(r"--[a-z0-9]+:#[0-9a-f]+", page)
    half = next(i for i, c in enumerate(colours) if c.split(":")[0] == colours[0].split(":")[0]
                and i)
    for figure in re.findall(r"<figure>.*?</figure>", page, re.S):
        title = re.search(r"<figcaption><b>(.*?)</b>", figure)[1]
        if wanted in html.unescape(title):
            break
    else:
        sys.exit(f"picture.py: no figure has the title '{wanted}'")
    legend = re.findall(r'<li class="(h\d)"><i></i>(.*?)</li>', figure, re.S)
    foot = re.search(r"<footer>(.*?) · <code>.*?</code> · (\S+)", page, re.S)
    said = " · ".join(part for part in foot.groups()[0].split(" · ") if "compiler" not in part)
    said = f"{re.sub(r' .commit [^)]*.', '', said)} · {foot[2]}"
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', figure).groups())
    above = TOP + ROW * -(-len(legend) // ACROSS) + 8
    inner = re.search(r"<svg[^>]*>(.*?)</svg>", figure, re.S)[1]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + above}" '
           f'width="{width}" height="{height + above}" font-family="system-ui,sans-serif" '
           f'role="img" aria-label="{title}">',
           "<style>", f"svg{{{';'.join(colours[:half])}}}",
           f"@media(prefers-color-scheme:dark){{svg{{{';'.join(colours[half:])}}}}}",
           ".back{fill:var(--card)}.grid line{stroke:var(--line)}"
           ".tick text,.axis text,.soft{fill:var(--soft);font-size:12px}"
           ".title{fill:var(--ink);font-size:16px;font-weight:600}"
           ".name{fill:var(--ink);font-size:12px}"
           ".curve path,.key{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}"
           ".curve.h0 path,.key.h0{stroke-width:3.6}"
           + "".join(f".h{i}{{--c:var(--h{i})}}" for i in range(10)), "</style>",
           f'<rect class="back" width="{width}" height="{height + above}" rx="10"/>',
           f'<text class="title" x="18" y="24">{title}</text>',
           f'<text class="soft" x="18" y="41">{said}</text>']
    for i, (hue, name) in enumerate(legend):
        x, y = 18 + i % ACROSS * (width - 36) // ACROSS, TOP + ROW * (i // ACROSS) + 14
        out.append(f'<path class="key {hue}" d="M{x} {y - 4}h18"/>'
                   f'<text class="name" x="{x + 26}" y="{y}">{name.strip()}</text>')
    out += [f'<g transform="translate(0 {above})">', inner.strip(), "</g>", "</svg>"]
    return "\n".join(out) + "\n"


def main():
    page, wanted, to = sys.argv[1:]
    pathlib.Path(to).write_text(picture(pathlib.Path(page).read_text(), wanted))


if __name__ == "__main__":
    main()
