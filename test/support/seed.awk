# Makes a copy of a source file that contains the bugs of its patches, each a choice at run time:
#
#   awk -v of=src/watch/drive.c -v to=COPY -v macro=SEEDED -v header=explore/bugs.h -f seed.awk \
#       SOURCE always=1 HOOKS.patch... always=0 BUGS.patch...
#
# Where a patch replaces lines, the copy has { if (SEEDED(<name of the patch>)) { new } else { old }
# }. Where it adds lines, the copy has { if (...) { new } }. So a patch must replace or add whole
# statements, and no declaration that is used after it. With always=1 the copy has the new lines and
# not the old ones, as after `patch`.
# A hunk may have moved, but must match line for line. The copy is written only if all hunks match.
# Lines of one patch may lie within those that another one replaces, or be the same. They must not
# overlap in another way.

function fail(what) {
    print FILENAME ":" FNR ": " what > "/dev/stderr"
    failed = 1
    exit 1
}

function matches(at,    i) {
    for (i = 1; i <= olds; i++)
        if (at + i - 1 < 1 || at + i - 1 > lines || line[at + i - 1] != old[i])
            return 0
    return 1
}

# Finds the place of the hunk: the match that is nearest to the line in its header.
function find(    away) {
    for (away = 0; away <= lines; away++) {
        if (matches(wanted - away))
            return wanted - away
        if (matches(wanted + away))
            return wanted + away
    }
    fail("this hunk is nowhere in " of)
}

# Makes edits from the hunk's runs of removed and added lines.
function hunk_ends(    at, i, mark, before) {
    at = find()
    before = " "
    for (i = 1; i <= parts; i++) {
        mark = substr(part[i], 1, 1)
        if (mark != " " && before == " ") {
            edits++
            first[edits] = at
            last[edits] = at - 1
            from[edits] = name
            kept[edits] = !always
            fresh[edits] = "#line " part_at[i] " \"" FILENAME "\"\n"
        }
        if (mark == "-")
            last[edits] = at
        if (mark == "+")
            fresh[edits] = fresh[edits] substr(part[i], 2) "\n"
        before = mark
        at += mark != "+"
    }
    in_hunk = 0
}

FILENAME == ARGV[1] { line[++lines] = $0; next }

FNR == 1 {
    if (in_hunk)
        fail("a hunk of the patch before does not end")
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/[.]patch$/, "", name)
    here = in_hunk = 0
}

in_hunk {
    part[++parts] = $0
    part_at[parts] = FNR
    if ($0 ~ /^[ -]/) { old[++olds] = substr($0, 2); olds_left-- }
    if ($0 ~ /^[ +]/) news_left--
    if ($0 !~ /^[ +-]/ || olds_left < 0 || news_left < 0)
        fail("no line of a hunk")
    if (olds_left == 0 && news_left == 0)
        hunk_ends()
    next
}

/^--- / { here = $2 == "a/" of; next }

here && /^@@ / {
    split($2 ",1", o, /[-,]/)
    split($3 ",1", n, /[+,]/)
    wanted = o[2]
    olds_left = o[3]
    news_left = n[3]
    parts = olds = 0
    in_hunk = 1
}

# Of two edits that begin at one line, the longer one is outside.
function outside(a, b) { return last[a] > last[b] || (last[a] == last[b] && a < b) }

function choose(e, braces) {
    return kept[e] ? braces " if (" macro "(" from[e] ")) {\n" fresh[e] : fresh[e]
}

function starts(at,    e, n, i, k, those) {
    for (e = 1; e <= edits; e++)
        if (first[e] == at && last[e] < at)
            text = text choose(e, "{") (kept[e] ? "} }\n" : "")
    for (e = 1; e <= edits; e++)
        if (first[e] == at && last[e] >= at) {
            for (i = ++n; i > 1 && outside(e, those[i - 1]); i--)
                those[i] = those[i - 1]
            those[i] = e
        }
    for (k = 1; k <= n; k++) {
        e = those[k]
        text = text choose(e, "{") (kept[e] ? "} else {\n" : "")
        gone += !kept[e]
    }
}

function ends(at,    e) {
    for (e = 1; e <= edits; e++)
        if (last[e] == at && first[e] <= at) {
            text = text (kept[e] ? "} }\n" : "")
            gone -= !kept[e]
        }
}

END {
    if (failed)
        exit 1
    if (in_hunk)
        fail("a hunk that does not end")
    for (a = 1; a <= edits; a++)
        for (b = 1; b <= edits; b++)
            if (first[a] < first[b] && first[b] <= last[a] && last[a] < last[b])
                fail("patches " from[a] " and " from[b] " overlap in " of)
    if (header)
        text = "#include \"" header "\"\n"
    text = text "#line 1 \"" ARGV[1] "\"\n"
    for (at = 1; at <= lines + 1; at++) {
        was = length(text)
        starts(at)
        if (at <= lines && !gone)
            text = text (length(text) > was || ended ? "#line " at " \"" ARGV[1] "\"\n" : "") \
                line[at] "\n"
        was = length(text)
        ends(at)
        ended = length(text) > was || gone
    }
    printf "%s", text > to
}
