/* An error names the rank at fault if "rank" and its number stand in the text, alone or in a list;
 * what a text means beyond that is for the reader of --texts. Where ranks come away in different
 * ways, each way is counted. */
#include "faults/verdict.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum way {
    WAY_NAMED, WAY_NAMELESS, WAY_LATE, WAY_EXIT, WAY_CRASH, WAY_ENDED,
    WAY_HANG, WAY_RIGHT, WAY_WRONG, WAYS
};

static const char *list_of_numbers(const char *text, int wanted, bool *found)
{
    while (isdigit((unsigned char)*text)) {
        char *after;
        long first = strtol(text, &after, 10), last = first;
        if (*after == '-' && isdigit((unsigned char)after[1]))
            last = strtol(after + 1, &after, 10);
        *found |= first <= wanted && wanted <= last;
        text = after;
        if (!strncmp(text, ", ", 2))
            text += 2;
        else if (!strncmp(text, " and ", 5))
            text += 5;
    }
    return text;
}

bool names_rank(const char *text, int rank)
{
    bool found = false;
    while (!found && (text = strcasestr(text, "rank")) != NULL) {
        text += 4;
        text += *text == 's';
        text += strspn(text, " =:#[");
        text = list_of_numbers(text, rank, &found);
    }
    return found;
}

static const char *signal_name(uint32_t sig)
{
    static const struct { uint32_t sig; const char *name; } names[] = {
        { SIGSEGV, "SIGSEGV" }, { SIGBUS, "SIGBUS" }, { SIGABRT, "SIGABRT" }, { SIGFPE, "SIGFPE" },
        { SIGILL, "SIGILL" }, { SIGPIPE, "SIGPIPE" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].sig == sig)
            return names[i].name;
    return "a signal";
}

static void add(char *to, size_t room, const char *format, ...)
{
    size_t n = strlen(to);
    va_list list;
    va_start(list, format);
    vsnprintf(to + n, room - n, format, list);
    va_end(list);
}

/* The first error of all, from which lateness counts: what comes after the grace is by that
 * rank's exit. */
static int64_t exits_at(const struct page *page)
{
    int64_t first = 0;
    for (uint32_t r = 0; r < page->ranks; r++) {
        const struct slot *s = &page->slot[r];
        if (page_load(&s->ending) == FAILED && (!first || s->ended < first))
            first = s->ended;
    }
    return first ? first + (int64_t)page->grace_ms * 900000 : 0;
}

/* To the rank at fault, it is the others who do not do as it does: one of them must be named. */
static bool names(const struct page *page, int reader, const char *text)
{
    int culprit = page_culprit(page);
    bool found = reader != culprit && names_rank(text, culprit);
    for (int r = 0; reader == culprit && r < culprit; r++)
        found |= names_rank(text, r);
    return found;
}

static enum way way_of(const struct page *page, int r, const struct fate *fate, int64_t exits)
{
    const struct slot *s = &page->slot[r];
    uint32_t ending = page_load(&s->ending), broke = page_load(&s->broke);
    if (ending == RETURNED)
        return s->wrong ? WAY_WRONG : WAY_RIGHT;
    if (ending == FAILED && exits && s->ended > exits)
        return WAY_LATE;
    if (ending == FAILED)
        return names(page, r, s->failure.text) ? WAY_NAMED : WAY_NAMELESS;
    if (broke && broke != BROKE_EXIT)
        return WAY_CRASH;
    return broke == BROKE_EXIT ? WAY_EXIT : fate->gone ? WAY_ENDED : WAY_HANG;
}

static const char *kinds(char *to, size_t room, const struct page *page, const enum way ways[],
                         enum way way)
{
    *to = 0;
    for (uint32_t r = 0; r < page->ranks; r++)
        if (ways[r] == way && !strstr(to, page->slot[r].failure.kind))
            add(to, room, "%s%s", *to ? " or " : "", page->slot[r].failure.kind);
    return to;
}

static void phrase(char *to, size_t room, const struct page *page, const enum way ways[],
                   enum way way, bool after_exit, bool launcher, const char *log)
{
    char what[100];
    int culprit = page_culprit(page);
    const char *tells = names_rank(log, culprit) ? "naming the rank" : "no name";
    const char *ender = launcher ? "the launcher" : "a signal";
    switch (way) {
    case WAY_NAMED:
        add(to, room, "%s, names the rank", kinds(what, sizeof what, page, ways, way));
        break;
    case WAY_NAMELESS:
        add(to, room, "%s, no name", kinds(what, sizeof what, page, ways, way));
        break;
    case WAY_LATE:
        add(to, room, "%s once that one exits", kinds(what, sizeof what, page, ways, way));
        break;
    case WAY_EXIT:     add(to, room, "the library ends the process, %s", tells); break;
    case WAY_CRASH:
        for (uint32_t r = 0; r < page->ranks; r++)
            if (ways[r] == way)
                snprintf(what, sizeof what, "%s", signal_name(page_load(&page->slot[r].broke)));
        add(to, room, "crash by %s", what);
        break;
    case WAY_ENDED:
        if (after_exit)
            add(to, room, "hang until that one exits, then ended by %s", ender);
        else
            add(to, room, "ended by %s, %s", ender, tells);
        break;
    case WAY_HANG:
        add(to, room,
            names_rank(log, culprit) ? "hang, with a report that names the rank" : "hang");
        break;
    case WAY_RIGHT:    add(to, room, "success, nothing noticed"); break;
    case WAY_WRONG:    add(to, room, "wrong result, in silence"); break;
    case WAYS:         break;
    }
}

static enum answer answer_of(const int counts[WAYS], int all)
{
    static const enum answer answers[WAYS] = {
        NAMED, NAMELESS, NAMELESS, ENDED, CRASHED, ENDED, HANGS, SUCCESS, SILENT
    };
    if (counts[WAY_WRONG] && counts[WAY_WRONG] + counts[WAY_RIGHT] == all)
        return SILENT;
    for (int w = 0; w < WAYS; w++)
        if (counts[w] == all)
            return answers[w];
    return MIXED;
}

static double duration(const struct page *page, const struct fate fates[], const enum way ways[],
                       int64_t fault_at)
{
    int64_t last = 0, called = 0;
    for (uint32_t r = 0; r < page->ranks; r++) {
        if (ways[r] == WAYS)
            continue;
        const struct slot *s = &page->slot[r];
        int64_t at = page_load(&s->ending) != UNDER_WAY ? s->ended
            : fates[r].gone ? fates[r].gone_at
            : 0;
        last = at > last ? at : last;
        called = s->began > called ? s->began : called;
    }
    fault_at = fault_at ? fault_at : called;
    return last > fault_at ? (double)(last - fault_at) / 1e6 : 0;
}

static void quote(struct outcome *o, const struct page *page, const char *log)
{
    o->said[0] = 0;
    for (uint32_t r = 0; r < page->ranks; r++) {
        const struct slot *s = &page->slot[r];
        if (page_load(&s->ending) == FAILED)
            add(o->said, sizeof o->said, "rank %u: %s: %.1500s\n", r, s->failure.kind,
                s->failure.text);
        else if (s->wrong)
            add(o->said, sizeof o->said, "rank %u: success, %u of %u elements are wrong\n", r,
                s->wrong, s->of);
    }
    if (*log)
        add(o->said, sizeof o->said, "printed: %.3000s\n", log);
}

void verdict(struct outcome *o, const struct page *page, const struct fate fates[],
             int64_t fault_at, bool launcher, const char *log)
{
    enum way ways[FAULT_RANKS_MAX];
    int counts[WAYS] = { 0 }, all = 0, kinds_of_end = 0;
    int64_t exits = exits_at(page);
    for (uint32_t r = 0; r < page->ranks; r++) {
        ways[r] = WAYS;
        if (!concerned((enum fault)page->fault, (int)r, page_culprit(page)))
            continue;
        ways[r] = way_of(page, (int)r, &fates[r], exits);
        counts[ways[r]]++;
        all++;
    }
    for (int w = 0; w < WAYS; w++)
        kinds_of_end += counts[w] > 0;
    o->answer = answer_of(counts, all);
    o->concluded = !counts[WAY_HANG];
    o->ms = o->concluded ? duration(page, fates, ways, fault_at) : 0;
    o->words[0] = 0;
    bool failures = counts[WAY_NAMED] + counts[WAY_NAMELESS] > 0;
    for (int w = 0; w < WAYS; w++) {
        if (!counts[w])
            continue;
        if (*o->words)
            add(o->words, sizeof o->words, "; ");
        if (kinds_of_end > 1)
            add(o->words, sizeof o->words, "%d of %d: ", counts[w], all);
        phrase(o->words, sizeof o->words, page, ways, (enum way)w, failures, launcher, log);
    }
    quote(o, page, log);
}

const char *answer_name(enum answer answer)
{
    static const char *const names[ANSWERS] = {
        "error, named", "error, no name", "job ended", "success", "crash", "hang",
        "wrong in silence", "mixed", "nothing left", "litter", "not run",
    };
    return names[answer];
}
