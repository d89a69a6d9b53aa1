# What leaves the tree by itself (headers, package, manual, completion, examples) says in its first
# lines under which licence it is (SPDX). For all else LICENSE does (and, in the archive of the
# sources, REUSE.toml: `reuse lint` is content there).
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

named='SPDX-License''-Identifier: MIT'    # in two pieces: not what this file is under

rule() {
  local file
  cd "$1" || exit 1
  find include src/python/tutti src/manual src/packaging/completion src/cli test/examples \
    -type f \( -name '*.h' -o -name '*.py' -o -name '*.pyi' -o -name '*.[137]' -o -name 'tutti.*' \
      -o -name '_tutti' -o -path 'test/examples/*.c' \) -not -path 'src/cli/*.[ch]' \
    2>/dev/null | sort | while read -r file; do
    case $file in
      include/*) head -n 400 "$file" ;;   # behind the comment that is the manual
      *) head -n 3 "$file" ;;
    esac | grep -q "$named" || echo "$file:1: names no licence (SPDX)"
  done
}

house
