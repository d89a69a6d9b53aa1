# No line of a source is longer than 100 columns, so that two files fit beside each other.
# Markdown, data and what a fuzzer has found (test/fuzz/corpus) do not count.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# A line with an address (https://...) may be longer: it cannot be broken.
rule() {
  cd "$1" || exit 1
  mapfile -t files < <(find src include test perf bootstrap CMakeLists.txt -type f \
    \( -name '*.[ch]' -o -name '*.cc' -o -name '*.py' -o -name '*.pyi' -o -name '*.sh' \
    -o -name '*.awk' -o -name '*.cmake' -o -name '*.in' -o -name CMakeLists.txt \
    -o -name bootstrap \) \
    -not -path 'test/fuzz/corpus/*' -not -path 'test/house/bad/*' 2>/dev/null | sort)
  # Bytes that continue a character of UTF-8 are no columns.
  [ ${#files[@]} = 0 ] || awk '
    length($0) > 100 {
        line = $0; gsub(/[\200-\277]/, "", line)
        if (length(line) > 100 && line !~ /https?:\/\//)
            print FILENAME ":" FNR ": " length(line) " columns; at most 100"
    }' "${files[@]}"
}

house
