/* A report is known by the heading of its table. Two are the same if all that stands above the
 * table is: who, what, where; the number of the rank that says it does not count. The table is a
 * look at all ranks, a moment apart. A program in C writes its report at once. Python writes a
 * traceback first, in pieces; so what begins as one is held until its last line has come, at most
 * for a moment.
 * Cost: a search in what comes from stderr. */
#include "launch/same_reports.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define HOLD_NS UINT64_C(200000000)
enum { HOLD_MOST = 64 * 1024, SAID_MOST = 64 };

static const char heading[] = "  rank pid     state    CPU      for      doing\n";
static const char traceback[] = "Traceback (most recent call last):\n";
static const char by_rank[] = "  called here, by rank ";

/* told: those of `others` that have been told of */
struct report_said { uint64_t key; int first, told, n; int *others; };

void same_reports_begin(struct same_reports *s, int size)
{
    *s = (struct same_reports){ .size = size, .due_ns = UINT64_MAX };
    s->said = calloc(SAID_MOST, sizeof *s->said);
}

void same_reports_end(struct same_reports *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->said[i].others);
    free(s->said);
    *s = (struct same_reports){ .due_ns = UINT64_MAX };
}

/* ---- what a report is known by ---- */

/* Without digits: a program may put its rank before all that it says. */
static uint64_t key_prefix(const char *line, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        if (line[i] < '0' || line[i] > '9')
            key = text_hash(line + i, 1, key);
    return key;
}

static uint64_t key_line(const char *line, size_t n, uint64_t key)
{
    const char *colon = memmem(line, n, ": ", 2);
    size_t prefix = n > sizeof by_rank && !memcmp(line, by_rank, sizeof by_rank - 1)
        ? sizeof by_rank - 1 + strspn(line + sizeof by_rank - 1, "0123456789")
        : colon && line[0] != ' ' ? (size_t)(colon - line)
                                  : 0;
    return text_hash(line + prefix, n - prefix, key_prefix(line, prefix, key));
}

static uint64_t report_key(const char *text, size_t n)
{
    uint64_t key = 1;
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t line = end ? (size_t)(end - text) + 1 : n;
        key = key_line(text, line, key);
        text += line;
        n -= line;
    }
    return key;
}

/* Where the table ends. */
static size_t report_rows(const char *rows, size_t n)
{
    size_t at = 0;
    while (at + 3 < n && rows[at] == ' ' && rows[at + 1] == ' ' && rows[at + 2] != ' ') {
        const char *end = memchr(rows + at, '\n', n - at);
        at = end ? (size_t)(end - rows) + 1 : n;
    }
    return at;
}

/* True: another rank has said it. */
static bool report_same(struct same_reports *s, int rank, uint64_t key)
{
    int i = 0;
    while (i < s->n && s->said[i].key != key)
        i++;
    if (i == s->n) {
        if (s->said && i < SAID_MOST)
            s->said[s->n++] = (struct report_said){ .key = key, .first = rank };
        return false;
    }
    struct report_said *said = &s->said[i];
    if (!said->others)
        said->others = calloc((size_t)s->size, sizeof *said->others);
    if (said->first == rank || !said->others || said->n == s->size)
        return false;
    for (int k = 0; k < said->n; k++)
        if (said->others[k] == rank)
            return false;
    said->others[said->n++] = rank;
    s->due_ns = clock_ns() + HOLD_NS;
    return true;
}

/* ---- what is held ---- */

static bool hold_add(struct report_hold *h, const char *bytes, size_t n)
{
    if (h->used + n > h->room) {
        size_t room = 2 * (h->used + n);
        char *text = realloc(h->text, room);
        if (!text)
            return false;
        h->text = text;
        h->room = room;
    }
    if (h->used == 0)
        h->since_ns = clock_ns();
    memcpy(h->text + h->used, bytes, n);
    h->used += n;
    return true;
}

/* The exception itself has come: a whole line that is not indented, behind the first. */
static bool hold_over(const struct report_hold *h)
{
    const char *line = h->text + sizeof traceback - 1, *to = h->text + h->used;
    if (h->used > HOLD_MOST)
        return true;
    for (const char *end; line < to && (end = memchr(line, '\n', (size_t)(to - line))) != NULL;
         line = end + 1) {
        bool goes_on = *line == ' ' || *line == '\n' || !strncmp(line, "Traceback", 9)
            || !strncmp(line, "During", 6) || !strncmp(line, "The above", 9);
        if (!goes_on)
            return true;
    }
    return false;
}

const char *same_reports_release(struct report_hold *h, size_t *n)
{
    *n = h->used;
    h->used = 0;
    return h->text;
}

uint64_t same_reports_due(const struct report_hold *h)
{
    return h->used ? h->since_ns + HOLD_NS : UINT64_MAX;
}

static bool begins_traceback(const char *bytes, size_t n)
{
    return n >= sizeof traceback - 1 && !memcmp(bytes, traceback, sizeof traceback - 1);
}

const char *same_reports_take(struct same_reports *s, struct report_hold *h, int rank,
                              const char *bytes, size_t *n)
{
    if (h->newline && bytes[0] == '\n') {            /* of a report that was dropped */
        bytes++;
        --*n;
    }
    h->newline = false;
    if (*n && (h->used || begins_traceback(bytes, *n)) && hold_add(h, bytes, *n)) {
        bytes = h->text;
        *n = h->used;
    }
    const char *table = memmem(bytes, *n, heading, sizeof heading - 1);
    if (table) {
        const char *rows = table + sizeof heading - 1, *to = bytes + *n;
        const char *rest = rows + report_rows(rows, (size_t)(to - rows));
        h->used = 0;
        if (!report_same(s, rank, report_key(bytes, (size_t)(table - bytes))))
            return bytes;
        h->newline = rest == to && rest[-1] != '\n';
        if (rest < to && *rest == '\n')
            rest++;
        *n = (size_t)(to - rest);
        return rest;
    }
    if (h->used && !hold_over(h))
        *n = 0;
    else
        h->used = 0;
    return bytes;
}

static int by_number(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

bool same_reports_tell(struct same_reports *s, char *room, size_t bytes)
{
    struct text t = { room, bytes, 0 };
    text_clear(&t);
    for (int i = 0; i < s->n; i++) {
        struct report_said *said = &s->said[i];
        int n = said->n - said->told;
        if (n == 0)
            continue;
        text_add(&t, "%d %srank%s said the same as rank %d: ", n, said->told ? "more " : "other ",
                 n > 1 ? "s" : "", said->first);
        qsort(said->others + said->told, (size_t)n, sizeof *said->others, by_number);
        text_add_ranks(&t, said->others + said->told, n);
        said->told = said->n;
        return true;
    }
    s->due_ns = UINT64_MAX;
    return false;
}
