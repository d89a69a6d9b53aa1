/* The step of uneven parts whose counts only the two ranks of a block have; pipeline_move.c says
 * why. Cost: a row of each rank that gives. */
#include "coll/parts.h"
#include "coll/pipeline.h"

#include <stdio.h>
#include <string.h>

void pipeline_pairs_fill(struct coll *c)
{
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    struct part_row *rows = pipeline_rows(c, c->pipeline.at);
    bool each = parts_how(c) & PARTS_EACH, gives = parts_gives(c, me),
         same_place = parts_how(c) & PARTS_PAIRS;
    memset(rows, 0, pipeline_rows_bytes(size));
    for (uint32_t p = 0; gives && p < (each ? size : 1); p++) {
        size_t count = parts_count(c, me, each ? p : me);
        struct place place = pipeline_may_lie(c, parts_send(c, p), count * c->width);
        /* In place, taken data overwrites given data: peers must find a copy. */
        if (each && same_place && !(parts_how(c) & PARTS_ROOT_GIVES)
            && parts_send(c, p) == parts_recv(c, p))
            place = (struct place){ 0, 0, 0 };
        rows[p] = (struct part_row){ count, place.lo < place.hi ? place.at : 0, place.lo,
                                     place.hi };
        c->sends.hi |= place.hi - place.lo;       /* a peer reads something in place: stay for it */
    }
}

/* p does not give me what I take: the operation ends for all. The text for it stands where the text
 * of an abort would. */
static void pairs_differ(struct coll *c, uint32_t p, uint64_t gives)
{
    struct watch *w = &c->comm->watch;
    snprintf(w->mine->why, sizeof w->mine->why,
             "rank %u gives rank %u %llu elements, which takes %zu", p, w->me,
             (unsigned long long)gives, parts_count(c, p, w->me));
    c->op.claim.differs = p + 1;
    c->op.wait = wait_for(&watch_arrival(w, p, c->op.claim.seq)->seq, UINT64_MAX, p);
}

bool pipeline_pairs_agree(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    /* At least one, so that `consumed` says when all ranks have finished with the rows: then
     * another comm may use the pipeline. */
    uint64_t total = c->pipeline.mine ? c->pipeline.mine : 1;
    for (uint32_t p = 0; p < w->size; p++) {
        if (p == w->me)
            continue;
        /* relaxed: after E1 */
        uint64_t theirs = load_relaxed64(&watch_arrival(w, p, c->op.claim.seq)->payload[1]);
        total = theirs > total ? theirs : total;
        if (!parts_moves(c, p, w->me))
            continue;
        const struct part_row *rows = pipeline_rows_of(c, p);
        uint64_t gives = rows ? rows[parts_how(c) & PARTS_EACH ? w->me : 0].count : UINT64_MAX;
        if (gives != parts_count(c, p, w->me)) {
            pairs_differ(c, p, gives);
            return false;
        }
    }
    pipeline_begin(c, total);
    return true;
}
