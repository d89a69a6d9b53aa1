/* A failure that the program handles must leave no box, and nobody can know while a call fails
 * whether it will. So the box is written when a rank leaves with a comm that has failed and whose
 * survivors have not agreed on anything: by exit or finalize. The journals of all ranks stand in
 * the arena until then. A rank that is killed while it writes is followed by the next one that
 * leaves. */
#include "api/survivor.h"

#include "box/keep.h"
#include "box/picture.h"
#include "group/agree.h"
#include "os/say.h"

#include <stdlib.h>
#include <string.h>

/* The comm by which this rank's job has failed; NULL: none. */
static struct tutti_comm *survivor_failed(const struct world *world)
{
    for (struct tutti_comm *c = world->comms; c; c = c->next) {
        uint32_t quit = load_acquire32(&c->watch.mine->quit);        /* E7 acquire */
        if ((c->watch.failed || (quit & QUIT_ALONE)) && !agree_was_reached(c->watch.slot))
            return c;
    }
    return NULL;
}

/* One rank gets it: the first, or the next after one that has died. */
static bool survivor_first(const struct world *world)
{
    const struct arena *arena = &world->arena;
    shared32 *word = &arena->join->boxed;
    uint32_t seen = 0, mine = (uint32_t)world->rank + 1;
    if (swap_if32(word, &seen, mine))
        return true;
    if (seen == BOXED_BY_LAUNCHER || seen > arena->header->size)
        return false;
    uint32_t mark = load_acquire32(process_mark_word(&arena->seats[seen - 1].mark));    /* E5 */
    return process_mark_died(mark) && swap_if32(word, &seen, mine);
}

static int survivor_write(const struct world *world, const struct keep *k, const char *report,
                          struct text *path, struct text *why)
{
    struct picture p;
    struct box_bytes b = { 0 };
    int error = picture_take(&p, &world->arena, why);
    if (error)
        return error;
    p.moment.by = BOX_BY_RANK;
    p.moment.rank = (uint32_t)world->rank;
    error = picture_develop(&b, &p, report);
    if (!error)
        error = keep_box(k, p.copy.arena.header->job, p.moment.wall_ns, &b, path, why);
    free(b.at);
    picture_drop(&p);
    return error;
}

void survivor_leaves(struct world *world)
{
    struct keep k;
    struct tutti_comm *failed = survivor_failed(world);
    if (!failed || !keep_wanted(&k, false) || !survivor_first(world))
        return;
    char why_room[512], line[KEEP_PATH + 600];
    struct text why = TEXT_IN(why_room), t = TEXT_IN(line);
    struct text report = { malloc(REPORT_TEXT + 64), REPORT_TEXT + 64, 0 };
    if (!report.at)
        return;
    text_clear(&why);
    text_clear(&t);
    text_clear(&report);
    char *said = malloc(REPORT_TEXT);
    if (said) {
        comm_read(failed, said);
        text_add(&report, "rank %d: %s\n", world->rank, said);
    }
    text_add(&t, "tutti: black box: ");
    int error = survivor_write(world, &k, report.at, &t, &why);
    if (error)
        text_add(&t, "none could be written: %s", why.used ? why_room : "no memory");
    text_add(&t, "\n");
    say(line, t.used);
    free(said);
    free(report.at);
}
