/* All ranks of a call count it alike, so they try and decide in the same call, by the sum of what
 * all have seen. Of four calls that one of both does in a row the last two are timed: by then it
 * finds its own lines in the caches, as it will when it is kept. The first calls are no good
 * measure of either: pages are new. So who leads after the first rows is used, and is compared with
 * the other again before the 128th and the 256th call, before the 64th, too, if neither is clearly
 * ahead (more than two ranks: before the 32nd, too); who is then far behind is out at once. A call
 * of who has not been called for long takes several times as long: of a program's first hundred
 * calls no more than a few may be such.
 *
 * Between two ranks tutti's first eight calls are not timed: in them it tries its own ways by turns
 * (base/tuner.h), and each second one takes up to twice as long. When timed, they made an MPI of 62
 * us lead in an all_reduce of 1 MiB, which takes tutti 56, in 27 of 31 programs after 64 calls. Of
 * more ranks they are timed: an MPI whose ranks spin may take thousands of times as long.
 *
 * Between two ranks all but the large ones are tutti's before that for CALM calls: both are near
 * each other there, and the MPI's calls, which have not been called before, and the wrong choices
 * of what is seen in a few, cost more than they find. Of large ones a trial costs little.
 *
 * Before a call that is timed all ranks meet, so that none is timed while it waits for a late one,
 * or runs ahead of one. Of two ranks each gives the shortest calls; of more the time of all calls
 * counts: where ranks share CPUs a short one is chance.
 *
 * Before each call that the MPI does all ranks meet in the same collective of tutti, without data.
 * So a rank that is dead or in another collective is told of as if the call went through tutti, and
 * nobody waits for it in the MPI. What that costs is part of the MPI's time. */
#define TUTTI_NO_SITES
#include "mpi/contest.h"

#include "base/clock.h"

enum { CALM = 2048, ROW = 4, FIRST = 4 * ROW, FIRST_TWO = 6 * ROW, LATER = 64, LAST = 256,
       TIMED = 2 };  /* calls */
enum { TUTTI, MPI };
/* From so many bytes on there is no calm. An MPI that reads its peer's memory copies a block of
 * all_gather or all_to_all once, tutti copies it twice. */
static const size_t large[CONTEST_ALL] = {
    [CONTEST_BCAST] = 2 << 20, [CONTEST_REDUCE] = 2 << 20, [CONTEST_ALLREDUCE] = 1 << 20,
    [CONTEST_ALLGATHER] = 512 << 10, [CONTEST_ALLTOALL] = 512 << 10,
    [CONTEST_REDUCE_SCATTER] = 2 << 20
};
/* How many times as slow as the other is out in the middle of the first calls, and later, and is
 * clearly behind; tutti leads where both are even. */
static const double HOPELESS = 10, TWICE = 2, CLEAR = 1.25, EVEN = 1.03;

/* True: all ranks are in this call. Else the comm has failed, and tutti says so in the call. */
static bool all_here(tutti_comm *comm, enum contest_of of, int root)
{
    switch (of) {
    case CONTEST_BCAST:
        return !tutti_broadcast_at("MPI_Bcast", NULL, 0, TUTTI_U8, root, comm, NULL);
    case CONTEST_REDUCE:
        return !tutti_reduce_at("MPI_Reduce", NULL, NULL, 0, TUTTI_U8, TUTTI_SUM, root, comm, NULL);
    case CONTEST_ALLREDUCE:
        return !tutti_all_reduce_at("MPI_Allreduce", NULL, NULL, 0, TUTTI_U8, TUTTI_SUM, comm,
                                    NULL);
    case CONTEST_ALLGATHER:
        return !tutti_all_gather_at("MPI_Allgather", NULL, NULL, 0, TUTTI_U8, comm, NULL);
    case CONTEST_ALLTOALL:
        return !tutti_all_to_all_at("MPI_Alltoall", NULL, NULL, 0, TUTTI_U8, comm, NULL);
    case CONTEST_REDUCE_SCATTER:
    case CONTEST_ALL:
        break;
    }
    return !tutti_reduce_scatter_at("MPI_Reduce_scatter_block", NULL, NULL, 0, TUTTI_U8, TUTTI_SUM,
                                    comm, NULL);
}

static double took(const struct contest_entry *e, int way)
{
    double sum = 0;
    for (int i = 0; i < CONTEST_SHORTEST; i++)
        sum += (double)e->took[way][i];
    return sum;
}

static bool power_of_two(unsigned n) { return !(n & (n - 1)); }

static void decide(tutti_comm *comm, struct contest_entry *e)
{
    double mine[2] = { took(e, TUTTI), took(e, MPI) }, all[2];
    if (tutti_all_reduce_at("libtutti-mpi", mine, all, 2, TUTTI_F64, TUTTI_SUM, comm, NULL))
        return;                                      /* the call that follows tells it */
    double out = e->calls < FIRST ? HOPELESS : TWICE;
    e->leads = all[TUTTI] > EVEN * all[MPI] ? MPI : TUTTI;
    e->clear = all[TUTTI] > CLEAR * all[MPI] || all[MPI] > CLEAR * all[TUTTI];
    e->over = e->calls >= LAST || all[TUTTI] > out * all[MPI] || all[MPI] > out * all[TUTTI];
}

/* The rows of the first calls: who does them, and whether they are compared. */
static const struct { bool mpi, compared; } rows[][FIRST_TWO / ROW] = {
    { { false, true }, { true, true }, { true, true }, { false, true } },
    { { false, false }, { false, false }, { true, true }, { true, true }, { false, true },
      { false, true } }
};

/* Before this call. */
static bool decides(unsigned n, bool two)
{
    return two && n < LATER ? n == FIRST_TWO : n >= 2 * ROW && power_of_two(n);
}

/* Who does this call, and whether the two are compared in it; behind the first rows: in rows of who
 * leads, and the other, up to a power of two. */
static int turn(const struct contest_entry *e, bool two, bool *compared)
{
    unsigned n = e->calls, row = n / ROW;
    if (n < (two ? FIRST_TWO : FIRST)) {
        *compared = rows[two][row].compared;
        return rows[two][row].mpi ? MPI : TUTTI;
    }
    *compared = (!two || n >= LATER / 2) && (!e->clear || n >= LATER)
        && (power_of_two(row + 2) || power_of_two(row + 1));
    return e->leads ^ (*compared && power_of_two(row + 1));
}

enum fell contest_slow(struct heat *heat, struct contest *contest, tutti_comm *comm,
                       enum contest_of of, size_t bytes, int root)
{
    struct contest_entry *e = &contest->at[of][63 - __builtin_clzll(bytes)];
    if (contest->calm && bytes < large[of] && e->before < CALM) {
        e->before++;
        return FELL_NOT;
    }
    bool compared = false;
    int way = e->leads;
    if (!e->over && decides(e->calls, contest->two))
        decide(comm, e);
    if (!e->over) {
        way = turn(e, contest->two, &compared);
        e->calls++;
    }
    if (compared && (e->calls - 1u) % ROW >= ROW - TIMED && all_here(comm, of, root)) {
        heat->entry = e;
        heat->two = contest->two;
        heat->way = way;
        heat->began = (double)clock_ns();
    }
    return way == MPI && all_here(comm, of, root) ? FELL_SLOWER : FELL_NOT;
}

void contest_timed(const struct heat *heat)
{
    float new = (float)((double)clock_ns() - heat->began), *at = heat->entry->took[heat->way];
    if (!heat->two) {
        *at += new;
        return;
    }
    for (int i = 0; i < CONTEST_SHORTEST; i++)
        if (at[i] <= 0 || new < at[i]) {
            float longer = at[i];
            at[i] = new;
            new = longer;
        }
}
