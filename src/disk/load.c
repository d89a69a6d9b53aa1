/* A file is loaded once per host: rank 0 makes room in its span, each rank reads its stripe into
 * it, and all get the same memory, through the read-only mapping.
 * Cost: with four ranks a quarter of the reads, copies and pages that four separate loads take.
 * Each rank opens the file itself: to pass a descriptor would save one system call and cost a
 * meeting. The ranks compare whether it is the same file. */
#include "disk/call.h"
#include "base/error.h"
#include "disk/loaded.h"
#include "group/place.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { READING, TOLD };

/* O_NONBLOCK: an open of a FIFO without a writer would wait for ever. The file's kind is checked
 * before a read. */
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
    /* no descriptor: the file system has no O_DIRECT */
    d->direct = kept_of(open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_DIRECT));
    if (d->direct.fd >= 0 && (disk_which(d->direct.fd, &other, &size) < 0 || other != *which))
        kept_close(&d->direct);                      /* another file has the name by now */
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

/* After the gate: advances this rank's read. If a start has failed: DONE with *outcome at once. */
static int load_read(struct coll *c, uint64_t *outcome)
{
    struct disk_call *d = c->disk;
    const struct watch *w = &c->comm->watch;
    if (!d->begun) {
        uint64_t at = disk_said(c, 0, DISK_AT), size = disk_said(c, 0, DISK_BYTES);
        if (at && !loaded_there(c->comm->world, at, size))
            return DAMAGED;                          /* the word was written over */
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
    if (disk_call_end(d) && at) {                    /* no read writes into it any more */
        loaded_drop(c->comm->world, at, size);
        loaded_reclaim(c->comm->world);
    } else if (at)
        /* a read may still write there: the memory stays as long as this process lives */
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
