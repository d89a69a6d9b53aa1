# ctest: labels=nosan
# The manual as web pages: every page is there, every link leads to a page and a place on it, the
# index finds pages by words of their names and texts, and none is wider than a telephone. The last
# two in a browser, where there is one.
set -u
command -v mandoc >/dev/null || { echo "mandoc is missing"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
[ -d "$TUTTI_BUILD/man/man3" ] || { echo "this build has no pages of section 3"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
cd "$TUTTI_SOURCE" || exit 1

python3 -B src/manual/web.py mandoc "$scratch/html" "$TUTTI_BUILD/man/man3" src/manual/*.7 \
  src/cli/*.1 || lost "no web pages"
python3 - "$scratch/html" <<'PYTHON' || exit 1
import html, pathlib, re, sys
pages = {file.name: file.read_text() for file in pathlib.Path(sys.argv[1]).glob("*.html")}
places = {name: {html.unescape(at) for at in re.findall(r'id="([^"]+)"', page)}
          for name, page in pages.items()}
linked, lost = {"index.html"}, []
for name, page in pages.items():
    for link in re.findall(r'href="([^"]+)"', page):
        at, _, place = html.unescape(link).partition("#")
        if "://" in at or at == "manual.css":
            continue
        linked.add(at or name)
        if (at or name) not in pages or place and place not in places[at or name]:
            lost.append(f"{name}: the link {link} leads nowhere")
lost += [f"{name}: no page leads to it" for name in sorted(pages.keys() - linked)]
print("\n".join(lost))
sys.exit(bool(lost) or len(pages) < 90)
PYTHON

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "no browser: neither search nor width is tried"; exit 0; }
sed 's|^look();$|search.value = "PROBE message"; search.dispatchEvent(new Event("input"));|' \
  "$scratch/html/index.html" >"$scratch/html/asked.html"
shown() {  # PAGE: as it is when it is loaded and its scripts have run
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/browser" \
    --allow-file-access-from-files --dump-dom "file://$1" 2>"$scratch/said"
}
shown "$scratch/html/asked.html" >"$scratch/dom" ||
  { echo "the browser does not run here: neither search nor width is tried"; exit 0; }
python3 - "$scratch" <<'PYTHON'
import html, pathlib, re, sys
scratch = pathlib.Path(sys.argv[1])
dom = (scratch / "dom").read_text()
found = {row for row, hidden in re.findall(r'<tr data-page="([^"]+)"( hidden)?', dom) if not hidden}
def has(file):
    text = html.unescape(re.sub("<[^>]*>", " ", file.read_text().split("<body>")[1])).lower()
    return all(word in text for word in ("probe", "message"))
right = {file.name for file in scratch.glob("html/*.[137].html") if has(file)}
assert found == right and "tutti_probe.3.html" in found, f"found {found}, and not {right}"
assert f'id="found">{len(found)} pages<' in dom, "the number of pages is not said"
PYTHON

# Every page in a frame of 400 pixels.
{ echo '<!DOCTYPE html><body>'
  for page in "$scratch"/html/*.html; do
    [ "${page##*/}" = asked.html ] ||
      echo "<iframe width=400 height=600 src='html/${page##*/}'></iframe>"
  done
  cat <<'HTML'
<p id="wide"></p><script>onload = () => {
  const wide = document.getElementById("wide"), frames = [...document.querySelectorAll("iframe")];
  for (const frame of frames) {
    const width = frame.contentDocument.documentElement.scrollWidth;
    if (width > frame.clientWidth) wide.textContent += `${frame.getAttribute("src")}: ${width}; `;
  }
  wide.textContent += `${frames.length} seen`;
};</script>
HTML
} >"$scratch/narrow.html"
shown "$scratch/narrow.html" | sed -n 's/.*<p id="wide">\([^<]*\)<.*/\1/p' >"$scratch/wide"
grep -qE '^[0-9]+ seen$' "$scratch/wide" || lost "wider than 400 pixels: $(cat "$scratch/wide")"
