/* The picture is taken before a rank is told to end, because a rank that has been told is in
 * another place than where it hung. Its cost, a millisecond for a few ranks and some 50 for 1024,
 * is paid by the launcher, for whom no rank waits then. */
#include "launch/black_box.h"

#include "base/error.h"
#include "box/keep.h"
#include "group/agree.h"

#include <stdlib.h>
#include <sys/wait.h>

void black_box_take(struct black_box *b, const struct arena *arena)
{
    struct keep k;
    char room[256];
    struct text why = TEXT_IN(room);
    /* relaxed: how many it are does not matter */
    if (b->taken || load_relaxed32(&arena->join->joined) == 0 || !keep_wanted(&k, true))
        return;
    b->taken = picture_take(&b->picture, arena, &why) == 0;
    b->picture.moment.by = BOX_BY_LAUNCHER;
}

/* The survivors of some comm have agreed on who is left. */
static bool agreed(const struct arena *arena)
{
    uint32_t reached = load_acquire32(&arena->join->reached);        /* E80 acquire */
    for (uint32_t i = 0; i < reached && i < arena->header->slots; i++) {
        const struct slot *slot = arena_slot(arena, i);
        /* E7 acquire */
        if (load_acquire64(&slot->verdict) && agree_was_reached(slot))
            return true;
    }
    return false;
}

/* Nobody was hurt, or the others have gone on without one that was. Those that end because of it
 * end badly. */
static bool handled(const struct children *children)
{
    int well = 0;
    for (int r = 0; r < children->size; r++) {
        const struct child *c = &children->child[r];
        well += c->ended && c->status == 0;
        if (c->ours && c->status != 0)
            return false;
    }
    return well == children->size || (2 * well >= children->size && agreed(children->arena));
}

bool black_box_write(struct black_box *b, const struct children *children, const char *report,
                     struct text *said)
{
    struct box_bytes bytes = { 0 };
    struct keep k;
    /* no rank had joined by then: some may have come later, and have failed because of it */
    black_box_take(b, children->arena);
    if (!b->taken || handled(children) || !keep_wanted(&k, true))
        return false;
    for (int r = 0; r < children->size; r++)
        if (children->child[r].ended)
            b->picture.ranks[r].ended = (uint32_t)children->child[r].status << 1 | 1;
    char room[512];
    struct text why = TEXT_IN(room);
    text_clear(&why);
    text_add(said, "black box: ");
    size_t before = said->used;
    int error = picture_develop(&bytes, &b->picture, report);
    if (!error)
        error = keep_box(&k, b->picture.copy.arena.header->job, b->picture.moment.wall_ns, &bytes,
                         said, &why);
    if (error) {
        said->used = before;
        text_add(said, "none could be written: %s", why.used ? room : error_system(error));
    }
    free(bytes.at);
    return true;
}

void black_box_drop(struct black_box *b)
{
    if (b->taken)
        picture_drop(&b->picture);
    b->taken = false;
}
