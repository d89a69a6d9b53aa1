# ctest: labels=nosan
# The archive of the sources, and the list of what it is made of, have the same bytes from two
# clones of one commit, made at another time, in another folder, with another umask; the list names
# every library that the binaries load. Compressed lightly here: TUTTI_PROVE=1 as for a release.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lost() { echo "$*" >&2; exit 1; }
[ -e "$TUTTI_SOURCE/.git" ] || { echo "this is no git tree"; exit 77; }
command -v git xz python3 >/dev/null || { echo "git, xz or python3 is missing"; exit 77; }
[ "${TUTTI_PROVE:-}" = 1 ] || export TUTTI_XZ=0

makes() {  # FOLDER UMASK: prints names and checksums of what is made
  git -c safe.directory='*' clone -q --depth 1 "file://$TUTTI_SOURCE" "$1"
  (umask "$2"; cd "$1"; chmod -R "$3" src; ./bootstrap tarball >"$scratch/log" 2>&1) ||
    { cat "$scratch/log"; lost "./bootstrap tarball failed"; }
  (cd "$1/build/packages" && sha256sum ./*)
}
first=$(makes "$scratch/one" 022 go-w)
second=$(TZ=Asia/Tokyo LC_ALL=C.UTF-8 makes "$scratch/some/where/else" 077 go-rwx)
[ "$(wc -l <<<"$first")" = 2 ] || lost "two files were expected: $first"
[ "$first" = "$second" ] || lost "two archives of one commit differ:
$first
$second"

# what is in it is what git has, and what `reuse lint` wants at the top
cd "$scratch/one"
tar -tf build/packages/*.orig.tar.xz | sed 's/^[^/]*\///' | grep -v '/$' | grep . | sort \
  >"$scratch/archived"
{ git ls-files; printf '%s\n' LICENSES/MIT.txt REUSE.toml; } | sort |
  diff - "$scratch/archived" >&2 || lost "the archive has other files than git"

python3 - build/packages/*.spdx.json "$(readelf -dW "$TUTTI_BUILD"/{libtutti.so,tutti} |
  sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | sort -u | tr '\n' ' ')" <<'PY'
import json, sys
made = json.load(open(sys.argv[1]))
ids = [part["SPDXID"] for part in made["packages"] + made["files"]] + [made["SPDXID"]]
assert len(ids) == len(set(ids)), "an SPDXID is there twice"
for relation in made["relationships"]:
    for end in ("spdxElementId", "relatedSpdxElement"):
        assert relation[end] in ids, f"nothing is called {relation[end]}"
said = " ".join(part["comment"] for part in made["packages"])
for library in sys.argv[2].split():
    loader = library.startswith("ld-linux") and "the loader" in said
    assert loader or library in said, f"the list of parts does not name {library}"
assert made["packages"][0]["licenseDeclared"] == "MIT"
PY
