# What leaves the tree by itself (headers, package, manual, completion, examples) says in its first
# lines under which licence it is: SPDX-License-Identifier: MIT. For all else LICENSE does.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

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
    esac | grep -q 'SPDX-License-Identifier: MIT' || echo "$file:1: names no licence (SPDX)"
  done
}

house
