/* An outcome is one word in the arrival line. Each rank knows the path, so all write the same
 * sentence from it. A disk error does not fail the comm: the gate was passed, all outcomes are
 * published, C(k) holds. Cost: a word for each rank. */
#include "disk/call.h"

#include "base/error.h"
#include "os/timed_call.h"
#include "watch/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_BITS = 44, ERROR_BITS = 12, END_PATIENCE_NS = 1000000000 };
#define AT_MOST ((UINT64_C(1) << AT_BITS) - 1)       /* stands for all offsets from 16 TiB on */

static struct disk_call *call_make(const char *path)
{
    struct disk_call *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->file = d->direct = KEPT_NONE;
    d->path = strdup(path);
    if (!d->path) {
        free(d);
        return NULL;
    }
    return d;
}

struct disk_call *disk_describe(struct coll *c, struct tutti_comm *comm, const char *path,
                                const struct algorithm *algorithm, const struct call_ways *ways)
{
    struct disk_call *d = call_make(path);
    if (!d)
        return NULL;
    c->comm = comm;
    c->algorithm = algorithm;
    c->ways = ways;
    c->disk = d;
    return d;
}

void disk_choose(struct coll *c) { (void)c; }
int disk_keep(struct coll *c) { (void)c; return 0; }

void disk_claim(struct coll *c)
{
    c->op.claim.commit_at = offsetof(struct member, given);
    c->op.claim.commit = c->op.claim.seq;
    c->op.claim.committer = -1;
}

static void end_it(void *arg)
{
    struct disk_call *d = arg;
    if (d->begun)
        stripe_end(&d->stripe);
    if (d->there && d->name)
        unlink(d->name);
    kept_close(&d->file);
    kept_close(&d->direct);
    free(d->book);
    free(d->target);
    free(d->name);
    free(d->path);
    free(d);
}

/* An unlink also waits for a write to that file. */
bool disk_call_end(struct disk_call *d)
{
    if (d->there || (d->begun && d->stripe.busy))
        return timed_call_run(end_it, d, END_PATIENCE_NS);
    end_it(d);
    return true;
}

uint64_t disk_outcome(enum disk_what what, int error, uint64_t at)
{
    return (uint64_t)what << (AT_BITS + ERROR_BITS)
        | (uint64_t)(-error & ((1 << ERROR_BITS) - 1)) << AT_BITS | (at < AT_MOST ? at : AT_MOST);
}

int disk_which(int fd, uint64_t *which, uint64_t *size)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    *size = (uint64_t)st.st_size;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    const uint64_t id[2] = { (uint64_t)st.st_dev, (uint64_t)st.st_ino };
    *which = text_hash(id, sizeof id, 1) | 1;
    return 0;
}

void disk_say(struct coll *c, int word, uint64_t value)
{
    store_relaxed64(disk_word(c, c->comm->watch.me, word), value);   /* relaxed: E1 publishes it */
}

int disk_failed_start(const struct coll *c)
{
    for (uint32_t p = 0; p < c->comm->watch.size; p++)
        if (disk_said(c, p, DISK_START))
            return (int)p;
    return -1;
}

void disk_tell(struct coll *c, uint64_t outcome)
{
    struct watch *w = &c->comm->watch;
    store_relaxed64(disk_word(c, w->me, DISK_OUTCOME), outcome);     /* relaxed: E22 publishes it */
    watch_raise(w, &w->mine->given, c->op.claim.seq);                /* E22 release */
    c->disk->told = true;
}

int disk_all_told(struct coll *c, int but)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t i = 1; i <= w->size; i++) {
        /* rank 0 last: it may wait for others, and a report must name those */
        uint32_t p = i % w->size;
        /* E22 acquire */
        if ((int)p != but && load_acquire64(&w->members[p].given) < c->op.claim.seq) {
            c->op.wait = wait_for(&w->members[p].given, c->op.claim.seq, p);
            return WAITING;
        }
    }
    return DONE;
}

static void explain(struct coll *c, uint32_t p, enum disk_what what, int error, uint64_t at)
{
    static const char *const sentence[] = {
        [DISK_OPEN] = "cannot be opened", [DISK_KIND] = "is no regular file",
        [DISK_MEMORY] = "there is no memory for its bytes", [DISK_READ] = "cannot be read",
        [DISK_ENDED] = "became shorter while it was read: it ends",
        [DISK_OTHER] = "is another file there than for rank 0",
        [DISK_CREATE] = "no new file can be made beside it",
        [DISK_ROOM] = "there is no room for its bytes", [DISK_WRITE] = "cannot be written",
        [DISK_SYNC] = "what was written cannot be brought to the disk",
        [DISK_RENAME] = "the new file cannot take its name",
    };
    char place[64] = "";
    if (what == DISK_READ || what == DISK_WRITE || what == DISK_ENDED)
        snprintf(place, sizeof place, at < AT_MOST ? " at byte %llu" : " at byte %llu or behind",
                 (unsigned long long)at);
    bool known = (unsigned)what < sizeof sentence / sizeof sentence[0] && sentence[what];
    comm_explain(c->comm, "%s of \"%.300s\" at %s, on rank %u: %s%s%s%s",
                 kind_name(fingerprint_kind(c->op.claim.descriptor)), c->disk->path,
                 arena_site_text(c->comm->watch.arena, c->op.site), p,
                 known ? sentence[what] : "an error without a name", place,
                 what == DISK_KIND || what == DISK_ENDED || what == DISK_OTHER ? "" : ": ",
                 what == DISK_KIND || what == DISK_ENDED || what == DISK_OTHER
                     ? ""
                     : error_system(error));
}

int disk_judge(struct coll *c)
{
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        uint64_t said = disk_said(c, p, DISK_OUTCOME);
        int error = -(int)(said >> AT_BITS & ((1 << ERROR_BITS) - 1));
        if (!said)
            continue;
        explain(c, p, (enum disk_what)(said >> (AT_BITS + ERROR_BITS)), error, said & AT_MOST);
        return error ? error : -EIO;
    }
    return 0;
}

int disk_transfer(struct coll *c)
{
    struct stripe *s = &c->disk->stripe;
    if (stripe_advance(s))
        return DONE;
    return s->idle && s->ends ? watch_own(&c->op, s->ends, s->seen + 1) : watch_poll(&c->op);
}

int disk_stripe(struct coll *c, const struct stripe_plan *plan, enum disk_what memory,
                uint64_t *outcome)
{
    struct disk_call *d = c->disk;
    *outcome = 0;
    if (!d->begun) {
        int r = stripe_begin(&d->stripe, plan);
        if (r < 0) {
            *outcome = disk_outcome(memory, r, 0);
            return DONE;
        }
        d->begun = true;
    }
    uint64_t before = d->stripe.moved;
    int over = disk_transfer(c);
    journal_count(&c->comm->watch, FIGURE_BYTES, d->stripe.moved - before);
    if (over == WAITING)
        return WAITING;
    if (d->stripe.error)
        *outcome = disk_outcome(d->stripe.syncing ? DISK_SYNC
                                    : d->stripe.ended ? DISK_ENDED
                                    : plan->write ? DISK_WRITE
                                    : d->stripe.error == -ENOMEM ? DISK_MEMORY
                                    : DISK_READ,
                                d->stripe.error, d->stripe.error_at);
    return DONE;
}
