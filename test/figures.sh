#!/usr/bin/env bash
# What the last run of ctest in a build folder has shown, as Markdown: how many tests, on what machine, and the figures that the proving
# tests print of themselves (how many kills, cases, schedules ...). For test/README.md:
#
#     ctest --preset prove && test/figures.sh build/prove
#     test/figures.sh build/dev '^(watch|group)[.]'      # some tests only
set -euo pipefail
export LC_ALL=C

log=${1:?usage: test/figures.sh BUILD-FOLDER [REGEX]}/Testing/Temporary/LastTest.log
[ -r "$log" ] || { echo "$log: is not there; run ctest first" >&2; exit 2; }
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1)

awk -v wanted="${2:-.}" -v machine="${cpu:-unknown processor}, $(nproc) CPUs, Linux $(uname -r)" '
    # A line that counts something: a number, and one of these words.
    BEGIN {
        most = 12
        counts = "(points|kills|deaths|worlds|cases|runs|schedules|interleavings|executions|states|steps|instructions|mutations|inputs|" \
                 "executed units|rounds|seeded bug|cycles|programs|repaired|times the (old|new) value|together|idle job)"
    }
    /^[0-9]+\/[0-9]+ Test: / { name = $3; lines = 0; inside = 0; time = "" }
    /^Output:$/ { inside = 1; next }
    /^<end of output>$/ { inside = 0 }
    inside && name ~ wanted && (/[0-9]/ || /seeded bug/) && $0 ~ counts && !/^\[|WRONG|SEED|^world [0-9]+:|^#/ { sub(/^[ \t]+/, ""); line[++lines] = $0 }
    /^Test time = / { time = $4 }
    /^Test (Passed|Failed)|^Test Skipped|\*\*\*(Skipped|Failed|Timeout|Exception|Not Run)/ && name != "" && name ~ wanted {
        all++; sum += time
        if (/Passed/) passed++; else if (/Skipped/) { skipped++; others = others " " name } else { failed++; failures = failures " " name }
        if (lines) rows = rows sprintf("- `%s`, %.0f s\n", name, time)
        for (i = 1; i <= lines && i <= most; i++) rows = rows "  - " line[i] "\n"
        if (lines > most) rows = rows sprintf("  - and %d lines like these\n", lines - most)
        name = ""
    }
    END {
        printf "%d tests on %s: %d passed, %d failed, %d skipped; %.0f s in all.\n", all, machine, passed, failed, skipped, sum
        if (failed) print "Failed:" failures "."
        if (skipped) print "Skipped:" others "."
        if (rows != "") printf "\n%s", rows
    }' "$log"
