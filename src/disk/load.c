/* A file, once per host: rank 0 makes room for it in its span, every rank reads its stripe straight
 * into that, and all get the same memory through the mapping that cannot be written. A quarter of
 * the reads, copies and pages where four ranks would each have read it. Every rank opens the file
 * itself: a descriptor that was handed over would save one system call and cost a meeting. That it
 * is the same file is compared. */
#include "disk/call.h"
#include "disk/loaded.h"
#include "group/place.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { READING, TOLD };

/* O_NONBLOCK: a FIFO nobody writes to would keep us for ever. What it is, is looked at before
 * anything is read. */
static uint64_t open_it(struct disk_call *d, uint64_t *which)
{
    d->file = kept_of(open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (d->file.fd < 0)
        return disk_outcome(DISK_OPEN, -errno, 0);
    int r = disk_which(d->file.fd, which, &d->size);
    if (r == -EINVAL)
        return disk_outcome(DISK_KIND, r, 0);
    if (r < 0)
        return disk_outcome(DISK_OPEN, r, 0);
    uint64_t other = 0, size;
    /* none: a file system that has no such way */
    d->direct = kept_of(open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_DIRECT));
    if (d->direct.fd >= 0 && (disk_which(d->direct.fd, &other, &size) < 0 || other != *which))
        kept_close(&d->direct);                      /* another file has taken the name since */
    return 0;
}

static void load_start(struct coll *c)
{
    struct disk_call *d = c->disk;
    uint64_t which = 0, outcome = open_it(d, &which);
    int error = 0;
    if (!outcome && !place_readonly(c->comm->world, &error))
        outcome = disk_outcome(DISK_MEMORY, error, 0);
    if (!outcome && !(d->book = loaded_book()))
        outcome = disk_outcome(DISK_MEMORY, -ENOMEM, 0);
    if (!outcome && c->comm->watch.me == 0) {
        d->at = loaded_make(c->comm, d->size, &error);
        outcome = d->at ? 0 : disk_outcome(DISK_MEMORY, error, 0);
    }
    disk_say(c, DISK_AT, d->at);
    disk_say(c, DISK_BYTES, d->size);
    disk_say(c, DISK_WHICH, which);
    disk_say(c, DISK_START, outcome);
    disk_claim(c);
}

/* What there is to do after the gate; else the outcome, at once. */
static int load_read(struct coll *c, uint64_t *outcome)
{
    struct disk_call *d = c->disk;
    const struct watch *w = &c->comm->watch;
    if (!d->begun) {
        uint64_t at = disk_said(c, 0, DISK_AT), size = disk_said(c, 0, DISK_BYTES);
        if (at && !loaded_there(c->comm->world, at, size))
            return -EIO;                             /* somebody wrote over it */
        d->at = at;
        d->size = size;
        if (disk_failed_start(c) >= 0) {
            *outcome = disk_said(c, w->me, DISK_START);
            return DONE;
        }
        if (disk_said(c, 0, DISK_WHICH) != disk_said(c, w->me, DISK_WHICH)) {
            *outcome = disk_outcome(DISK_OTHER, -ESTALE, 0);
            return DONE;
        }
    }
    struct stripe_plan plan = {
        d->file, d->direct, false, c->comm->world->arena.base + d->at, 0, 0
    };
    stripe_share(d->size, w->size, w->me, &plan.from, &plan.to);
    return disk_stripe(c, &plan, DISK_MEMORY, outcome);
}

static int load_end(struct coll *c)
{
    struct disk_call *d = c->disk;
    struct world *world = c->comm->world;
    int r = disk_judge(c), error;
    const char *base = r == 0 ? place_readonly(world, &error) : NULL;
    if (base) {
        loaded_give(world, d->book, base + d->at, d->at, d->size);
        d->book = NULL;
        *d->data = base + d->at;
        *d->bytes = d->size;
        d->at = 0;                                   /* the caller's now */
    }
    c->answer = r;
    return DONE;
}

static int load_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    uint64_t outcome = 0;
    if (c->phase == GATE_START)
        load_start(c);
    if (c->phase != AFTER_GATE) {
        if (c->gate->advance(op) == WAITING)
            return WAITING;
        c->phase = AFTER_GATE;
    }
    if (c->disk->step == READING) {
        int r = load_read(c, &outcome);
        if (r != DONE)
            return r;
        disk_tell(c, outcome);
        c->disk->step = TOLD;
    }
    return disk_all_told(c, -1) == WAITING ? WAITING : load_end(c);
}

const struct algorithm disk_load_stripes = {
    "stripes", KIND_LOAD, SIZE_MAX, load_advance, NULL, NULL,
    .help = "each rank reads its share of the file, once, into memory that all see"
};

static void load_over(struct coll *c, int result)
{
    struct disk_call *d = c->disk;
    (void)result;
    if (!d)
        return;
    uint64_t at = d->at, size = d->size;
    if (disk_call_end(d) && at) {                    /* nothing of it is written any more */
        loaded_drop(c->comm->world, at, size);
        loaded_reclaim(c->comm->world);
    } else if (at)
        /* its bytes may still come: there, for as long as this process lives */
        place_keep(c->comm->world);
    c->disk = NULL;
    c->ways = NULL;
}

static const struct call_ways load_ways = { disk_choose, disk_keep, load_over };

int disk_load(struct coll *c, struct tutti_comm *comm, const char *path, const void **data,
              size_t *bytes)
{
    struct disk_call *d = disk_describe(c, comm, path, &disk_load_stripes, &load_ways);
    if (!d)
        return -ENOMEM;
    d->data = data;
    d->bytes = bytes;
    return 0;
}
