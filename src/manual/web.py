# SPDX-License-Identifier: MIT
"""Makes web pages of the manual's pages, with an index that can be searched.

usage: web.py MANDOC OUT PAGE_OR_FOLDER...

mandoc turns a page into HTML and its references into links; this puts the pages side by side.
"""

import html
import pathlib
import re
import subprocess
import sys

SECTIONS = {"1": "Commands", "3": "Functions", "7": "Guides"}
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tutti: manual</title>
<link rel="stylesheet" href="manual.css">
</head>
<body>
<h1>tutti: manual</h1>
<p><input id="search" type="search" placeholder="Search names and texts" autofocus
 aria-label="Search names and texts"> <span id="found"></span></p>
%s
<script>
const texts = %s;
const search = document.getElementById("search");
function look() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll("tr[data-page]")) {
    const text = row.textContent.toLowerCase() + " " + texts[row.dataset.page];
    row.hidden = !words.every(word => text.includes(word));
    shown += !row.hidden;
  }
  for (const table of document.querySelectorAll("section"))
    table.hidden = !table.querySelector("tr[data-page]:not([hidden])");
  document.getElementById("found").textContent = words.length ? shown + " pages" : "";
}
search.addEventListener("input", look);
look();
</script>
</body>
</html>
"""


MENTIONED = re.compile(r"<b>([a-z_-]+)</b>\s*\(([137])\)")  # macros of man(7) make no links


def linked(match, names):
    """A page that is mentioned becomes a link to it, if there is one."""
    name = f"{match[1]}.{match[2]}"
    return f'<a class="Xr" href="{name}.html">{match[1]}({match[2]})</a>' if name in names \
        else match[0]


def plain(page):
    """The words of a page, for the search."""
    text = re.sub(r"<[^>]*>", " ", page[page.index("<body>"):])
    return " ".join(sorted(set(re.findall(r"[\w-]{2,}", html.unescape(text).lower()))))


def main():
    mandoc, out = sys.argv[1], pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for arg in map(pathlib.Path, sys.argv[3:]):
        files += sorted(arg.iterdir()) if arg.is_dir() else [arg]
    rows, texts = {}, {}
    names = {file.name for file in files}
    for file in files:
        made = subprocess.run([mandoc, "-T", "html", "-O", "style=manual.css,man=%N.%S.html,toc",
                               str(file)], capture_output=True, text=True, check=True).stdout
        made = MENTIONED.sub(lambda m: linked(m, names), made)
        made = made.replace("<body>", '<body>\n<p class="home"><a href="index.html">tutti: manual'
                            "</a></p>", 1)
        name = file.name + ".html"
        (out / name).write_text(made)
        if file.is_symlink():
            continue
        said = re.search(r'<(?:span|div) class="Nd"[^>]*>(.*?)</(?:span|div)>', made, re.S)
        if not said:  # a page of the older macros
            said = re.search(r"<h1[^>]*>.*?NAME.*?</h1>\s*<p[^>]*>.*?(?: - |&#x2014;)(.*?)</p>",
                             made, re.S)
        rows.setdefault(file.suffix[1:], []).append(
            f'<tr data-page="{name}"><td><a href="{name}">{html.escape(file.stem)}</a></td>'
            f"<td>{said[1].strip() if said else ''}</td></tr>")
        texts[name] = plain(made)
    tables = "".join(f"<section><h2>{SECTIONS[key]}</h2>\n<table>{''.join(rows[key])}</table>"
                     "</section>\n" for key in SECTIONS if key in rows)
    listed = ",\n".join(f'"{name}": "{text}"' for name, text in texts.items())
    (out / "index.html").write_text(INDEX % (tables, "{" + listed + "}"))
    style = pathlib.Path(__file__).with_name("manual.css").read_text()
    (out / "manual.css").write_text(style)


if __name__ == "__main__":
    main()
