/* One rank's part of a list of cases. It trusts nobody: what it must get it folds itself from what all ranks are known to give, so it
 * need not meet the others, and a rank that is early or late by an operation stays so. */
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 };                             /* flush to zero, and denormals are zeros */
static unsigned modes_get(void) { return _mm_getcsr() & ~0x3fu; }
static void modes_set(unsigned modes) { _mm_setcsr(modes); }
#else
enum { FLUSH = 0 };
static unsigned modes_get(void) { return 0; }
static void modes_set(unsigned modes) { (void)modes; }
#endif

enum { GUARD = 64, GUARD_BYTE = 0xa5, JUNK = 0x5a };

/* Room for a vector with guards around it, at an offset from a cache line. */
struct area { unsigned char *at, *data; size_t bytes; };

static bool area_take(struct area *area, size_t bytes, unsigned offset)
{
    static const size_t offsets[] = { 0, 1, 7 };
    area->at = aligned_alloc(64, (bytes + 2 * GUARD + 64 + 63) / 64 * 64);
    area->data = area->at ? area->at + GUARD + offsets[offset] : NULL;
    area->bytes = bytes;
    if (!area->at)
        return false;
    memset(area->data - GUARD, GUARD_BYTE, GUARD);
    memset(area->data, JUNK, bytes);
    memset(area->data + bytes, GUARD_BYTE, GUARD);
    return true;
}

static bool area_whole(const struct area *area)
{
    for (size_t i = 0; i < GUARD; i++)
        if (area->data[i - GUARD] != GUARD_BYTE || area->data[area->bytes + i] != GUARD_BYTE)
            return false;
    return true;
}

struct run { const struct oracle_case *c; tutti_comm *comm; struct oracle_board *board; int me; size_t nth; };

__attribute__((format(printf, 2, 3))) static int complain(const struct run *run, const char *format, ...)
{
    uint32_t n = fetch_add32(&run->board->used, 1);
    if (n >= ORACLE_COMPLAINTS)
        return 1;
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    struct text t = { run->board->said[n], sizeof run->board->said[n], 0 };
    text_add(&t, "rank %d, case %zu: ", run->me, run->nth);
    oracle_describe(run->c, &t);
    text_add(&t, ": %s", what);
    return 1;
}

static int call(const struct run *run, const void *send, void *recv)
{
    const struct oracle_case *c = run->c;
    size_t count = oracle_count(c);
    tutti_type type = (tutti_type)c->v[DIM_TYPE];
    tutti_op op = (tutti_op)c->v[DIM_OP];
    bool flushes = (c->v[DIM_MODES] == MODES_FIRST_FLUSHES && run->me == 0) || (c->v[DIM_MODES] == MODES_LAST_FLUSHES && run->me == oracle_ranks(c) - 1);
    unsigned before = modes_get(), during = flushes ? before | FLUSH : before;
    int r;
    modes_set(during);
    switch (c->kind) {
    case KIND_BARRIER: r = tutti_barrier(run->comm, NULL); break;
    case KIND_BROADCAST: r = tutti_broadcast(recv, count, type, oracle_root(c), run->comm, NULL); break;
    case KIND_REDUCE: r = tutti_reduce(send, recv, count, type, op, oracle_root(c), run->comm, NULL); break;
    default: r = tutti_all_reduce(send, recv, count, type, op, run->comm, NULL); break;
    }
    unsigned after = modes_get();
    modes_set(before);
    if (r < 0)
        return complain(run, "%s", tutti_explain(run->comm));
    return after == during ? 0 : complain(run, "the floating-point modes were 0x%x and are 0x%x", during, after);
}

static int judge(const struct run *run, const char *what, const struct area *area, const void *tile, size_t width)
{
    size_t at = oracle_differs(area->data, area->bytes, tile, width);
    if (at != SIZE_MAX) {
        const unsigned char *is = area->data + at / width * width, *should = (const unsigned char *)tile + at / width % ORACLE_PERIOD * width;
        uint64_t a = 0, b = 0;
        memcpy(&a, is, width);
        memcpy(&b, should, width);
        return complain(run, "%s: element %zu is 0x%llx, should be 0x%llx", what, at / width, (unsigned long long)a, (unsigned long long)b);
    }
    return area_whole(area) ? 0 : complain(run, "%s: bytes beside it were written", what);
}

/* Broadcast: everybody's buffer becomes the root's; the root's own stays. */
static int run_broadcast(const struct run *run, struct area *buf, unsigned char *tile)
{
    size_t width = oracle_width(run->c->v[DIM_TYPE]);
    oracle_values(tile, run->c, oracle_root(run->c));
    if (run->me == oracle_root(run->c))
        oracle_fill(buf->data, buf->bytes, tile, width);
    int r = call(run, NULL, buf->bytes || run->nth % 2 ? buf->data : NULL);
    return r ? r : judge(run, "buf", buf, tile, width);
}

static int run_reduction(const struct run *run, struct area *send, struct area *recv, unsigned char *given, unsigned char *expected)
{
    const struct oracle_case *c = run->c;
    size_t width = oracle_width(c->v[DIM_TYPE]);
    bool gets = c->kind == KIND_ALL_REDUCE || run->me == oracle_root(c), in_place = c->v[DIM_PLACE] == PLACE_IN_PLACE;
    struct area *from = in_place ? recv : send;
    oracle_values(given, c, run->me);
    oracle_expect(expected, c);
    oracle_fill(from->data, from->bytes, given, width);
    /* Where a rank gets nothing, recv may be anything: NULL, its own send buffer, or memory that must stay as it is. */
    void *to = gets || in_place || run->nth % 2 ? recv->data : NULL;
    if (recv->bytes == 0 && run->nth % 2)
        to = NULL;
    int r = call(run, from->data, to);
    if (!r && gets)
        r = judge(run, "recv", recv, expected, width);
    if (!r && !(in_place && gets))
        r = judge(run, "send", from, given, width);
    if (!r && !gets && !in_place) {
        memset(expected, JUNK, ORACLE_PERIOD * width);
        r = judge(run, "recv of a rank that gets nothing", recv, expected, width);
    }
    return r;
}

int oracle_run(tutti_comm *comm, const struct oracle_case *cases, size_t n, struct oracle_board *board)
{
    unsigned char *given = malloc(ORACLE_PERIOD * 8), *expected = malloc(ORACLE_PERIOD * 8);
    int r = given && expected ? 0 : 1;
    for (size_t i = 0; i < n && !r; i++) {
        struct run run = { &cases[i], comm, board, tutti_rank(comm), i };
        struct area send = { 0 }, recv = { 0 };
        size_t bytes = oracle_count(&cases[i]) * oracle_width(cases[i].v[DIM_TYPE]);
        if (cases[i].kind == KIND_BARRIER)
            r = call(&run, NULL, NULL);
        else if (!area_take(&send, bytes, cases[i].v[DIM_SEND_AT]) || !area_take(&recv, bytes, cases[i].v[DIM_RECV_AT]))
            r = complain(&run, "no memory");
        else if (cases[i].kind == KIND_BROADCAST)
            r = run_broadcast(&run, &recv, given);
        else
            r = run_reduction(&run, &send, &recv, given, expected);
        free(send.at);
        free(recv.at);
    }
    free(given);
    free(expected);
    return r;
}
