#!/usr/bin/env bash
# What the last run of ctest in a build folder has shown, as Markdown: how many tests, on what
# machine, and the figures that the proving tests print of themselves (how many kills, cases,
# schedules ...). For test/README.md:
#
#     ctest --preset prove && test/figures.sh build/prove
#     test/figures.sh build/dev '^(watch|group)[.]'      # some tests only
set -euo pipefail
export LC_ALL=C

folder=${1:?usage: test/figures.sh BUILD-FOLDER [REGEX]}/Testing/Temporary
log=$folder/LastTest.log
[ -r "$log" ] || { echo "$log: is not there; run ctest first" >&2; exit 2; }
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1)
began=$(date -d "$(sed -n '1s/^Start testing: //p' "$log")" +%s)

# Which tests failed and which were skipped stands in files of their own, which may be those of an
# earlier run.
names_in() {
  [ ! -f "$1" ] || [ "$(stat -c %Y "$1")" -lt "$began" ] || sed 's/^[0-9]*://' "$1" | tr '\n' ' '
}

awk -v wanted="${2:-.}" -v machine="${cpu:-unknown processor}, $(nproc) CPUs, Linux $(uname -r)" \
    -v failing="$(names_in "$folder/LastTestsFailed.log")" \
    -v skipping="$(names_in "$folder/LastTestsDisabled.log")" '
    # A line that counts something: a number, and one of these words.
    BEGIN {
        most = 12
        n = split(failing, word, " "); for (i = 1; i <= n; i++) fails[word[i]] = 1
        n = split(skipping, word, " "); for (i = 1; i <= n; i++) skips[word[i]] = 1
        counts = "(points|kills|deaths|worlds|cases|runs|schedules|interleavings|executions|" \
                 "states|steps|instructions|mutations|inputs|executed units|rounds|seeded bug|" \
                 "cycles|programs|repaired|times the (old|new) value|together|idle job)"
    }
    /^[0-9]+\/[0-9]+ Test: / { name = $3; lines = 0; inside = 0; time = "" }
    /^Output:$/ { inside = 1; next }
    /^<end of output>$/ { inside = 0 }
    inside && name ~ wanted && (/[0-9]/ || /seeded bug/) && $0 ~ counts &&
        !/^\[|WRONG|SEED|^world [0-9]+:|^#/ { sub(/^[ \t]+/, ""); line[++lines] = $0 }
    /^Test time = / { time = $4 }
    /^Test (Passed|Failed)/ && name != "" && name ~ wanted {
        all++; sum += time
        if (name in fails) { failed++; failures = failures " " name }
        else if (name in skips) { skipped++; others = others " " name }
        else passed++
        if (lines) rows = rows sprintf("- `%s`, %.0f s\n", name, time)
        for (i = 1; i <= lines && i <= most; i++) rows = rows "  - " line[i] "\n"
        if (lines > most) rows = rows sprintf("  - and %d lines like these\n", lines - most)
        name = ""
    }
    END {
        printf "%d tests on %s: %d passed, %d failed, %d skipped; %.0f s in all.\n",
               all, machine, passed, failed, skipped, sum
        if (failed) print "Failed:" failures "."
        if (skipped) print "Skipped:" others "."
        if (rows != "") printf "\n%s", rows
    }' "$log"
