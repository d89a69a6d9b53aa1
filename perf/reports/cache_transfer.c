/* The floor of whatever goes from rank to rank: one has written, the other copies it out, and each
 * line moves from cache to cache on the way. The same copy of bytes that the reader wrote itself
 * stands beside it: what is between the two is the way, for source and target are used again and
 * again, in pages that both have touched. Where the CPUs are is told by one line that both write in
 * turns, without a pause: a pause is longer than the way on some processors. All this costs a job
 * of its own, some ms. */
#include "reports/cache_transfer.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 64, MOST = 1 << 20 };
enum { OWN, PEER_S, WAY, COUNT };

/* What is copied is written before each sample, with other bytes each time, and not measured. */
static void write_own(struct rank *r)
{
    if (r->me == 1)
        memset(r->sends, (int)(++r->turn & 0xff), r->bytes);
}

static void write_peer(struct rank *r)
{
    if (r->me == 0)
        memset(r->shared, (int)(++r->turn & 0xff), r->bytes);
}

static int copy_own(struct rank *r, uint64_t times)
{
    while (r->me == 1 && times--)
        memcpy(r->recvs, r->sends, r->bytes);
    return 0;
}

static int copy_peer(struct rank *r, uint64_t times)
{
    while (r->me == 1 && times--)
        memcpy(r->recvs, r->shared, r->bytes);
    return 0;
}

/* One word, by compare and exchange alone: so the line goes over whole each time. To look first
 * would fetch it twice, to read and to write. */
static int take_turns(struct rank *r, uint64_t times)
{
    shared64 *word = &r->bare->count.word;
    for (; times--; r->nth[0] += 2)
        for (uint64_t mine = r->nth[0] + (uint64_t)r->me;
             r->me < 2 && !swap_if64(word, &(uint64_t){ mine }, mine + 1);) {
        }
    return 0;
}

static const struct contender contenders[] = {
    [OWN] = {
        "memcpy own cache", "of what the reader has written", NULL, 0, true, 2,
        MOST, copy_own, write_own, OP_NONE
    },
    [PEER_S] = {
        "memcpy peer's cache", "of what rank 0 has written", NULL, 0, true, 2, MOST,
        copy_peer, write_peer, OP_NONE
    },
    [WAY] = {
        "line taken in turns", "twice, by compare and exchange", NULL, 0, true,
        0, 1, take_turns, NULL, OP_NONE
    },
    [COUNT] = { 0 }
};

/* Two threads of a core hand over a line in its first cache, some 8 ns. Cores that share a last
   cache need 20 ns where that is small, 70 where it is spread over a whole socket; by any other way
   it is 90 and more. Guests are not always told where their CPUs are, so it is measured. */
const char *cache_transfer_placement(double line_ns)
{
    return line_ns < 14 ? "to be on one core"
        : line_ns < 85 ? "to share a cache"
        : "to be far apart, with no cache in common";
}

static void tell(struct report *report, struct table *t, size_t bytes, const struct measured *m)
{
    char text[6][32];
    double rate[WAY], line[WAY];
    for (int i = 0; i < WAY; i++) {
        struct figure *f = report_figure(report, "copy", contenders[i].name, UNIT_NS, 2);
        figure_single(f, &m[i].single);
        figure_rounds(f, &m[i].rounds);
        f->bytes = bytes;
        f->ratio = i == OWN ? (struct ratio){ 0 } : series_ratio(&m[i].rounds, &m[OWN].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[OWN].name);
        rate[i] = (double)bytes / f->value * 1e9;
        line[i] = f->value / (double)(bytes / LINE);
    }
    const char *cells[] = { unit_text(text[0], sizeof text[0], UNIT_BYTES, (double)bytes),
                            unit_text(text[1], sizeof text[1], UNIT_RATE, rate[OWN]),
                            unit_text(text[2], sizeof text[2], UNIT_NS, line[OWN]),
                            unit_text(text[3], sizeof text[3], UNIT_RATE, rate[PEER_S]),
                            unit_text(text[4], sizeof text[4], UNIT_NS, line[PEER_S]),
                            unit_text(text[5], sizeof text[5], UNIT_RATIO,
                                      series_ratio(&m[PEER_S].rounds, &m[OWN].rounds).median) };
    table_row(t, false, cells);
}

/* Into the table's note: how long a line takes one way, and so where the CPUs are. */
static void place(struct report *report, struct table *t, struct team *team, struct effort e)
{
    struct measured m[CONTENDERS_MAX] = { 0 };
    char way[32];
    measure(team, &e, m);
    if (m[WAY].in) {
        struct figure *f = report_figure(report, "floor", contenders[WAY].name, UNIT_NS, 2);
        figure_single(f, &m[WAY].single);
        figure_rounds(f, &m[WAY].rounds);
        size_t said = strlen(t->note);
        /* whoever else runs here makes it longer, never shorter */
        double one = series_quantile(&m[WAY].rounds, 0.1) / 2;
        snprintf(t->note + said, sizeof t->note - said,
                 " One line goes from CPU to CPU in %s: they seem %s.",
                 unit_text(way, sizeof way, UNIT_NS, one), cache_transfer_placement(one));
    }
    measured_free(m, COUNT);
}

void ask_cache_transfer(const struct question *p)
{
    static const size_t sizes[] = { 4096, 65536, MOST };
    static const char *const heads[] = {
        "memcpy of", "own cache", "a line", "peer's cache", "a line", "longer"
    };
    static const int width[] = { -14, 12, 10, 14, 10, 8 };
    enum { SIZES = sizeof sizes / sizeof *sizes, STEPS = SIZES + 1 };
    struct team team;
    struct table *t = report_table(p->report, 6, heads, width);
    double seconds = p->seconds / STEPS, share = p->share / STEPS;
    snprintf(t->title, sizeof t->title, "Copies from CPU to CPU");
    snprintf(t->note, sizeof t->note,
             "Rank 1 copies what it has written itself, and what rank 0 has just written: bytes "
             "copied a second, and the "
             "time for each 64 of them.");
    team_open(&team,
              &(struct team_plan){ .ranks = 2,
                                   .contenders = contenders,
                                   .shared_bytes = MOST,
                                   .pool_bytes = MOST,
                                   .done = p->done });
    place(p->report, t, &team,
          (struct effort){ seconds, p->options->quick, true, 0, p->done, share, OP_NONE, false,
                           1 });
    for (int k = 0; k < SIZES; k++) {
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = {
            seconds, p->options->quick, true, sizes[k],
            p->done + share * (k + 1), share, OP_NONE, false, 1
        };
        measure(&team, &e, m);
        if (m[OWN].in && m[PEER_S].in)
            tell(p->report, t, sizes[k], m);
        measured_free(m, COUNT);
    }
    team_close(&team);
}
