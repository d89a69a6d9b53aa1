# Nothing at the top but the four folders, the build, the texts and the dot files.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  # the top of a clone: what git ignores does not count
  if [ "$(git rev-parse --show-prefix 2>&1)" = "" ]; then
    git ls-files --cached --others --exclude-standard | cut -d/ -f1 | sort -u
  else
    find . -mindepth 1 -maxdepth 1 -not -name build -not -name 'build-*' | sed 's/^\.\///'
  fi | while read -r name; do
    case $name in
      include|src|test|perf) ;;
      README.md|LICENSE|CHANGELOG|CONTRIBUTING.md|SECURITY.md) ;;
      pyproject.toml|CMakeLists.txt|CMakePresets.json|bootstrap) ;;
      .*) ;;
      expected) [ "$1" != "$TUTTI_SOURCE" ] || echo "$name:0: has no place at the top" ;;
      *) echo "$name:0: has no place at the top" ;;
    esac
  done
}

house
