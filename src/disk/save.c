/* All ranks have the bytes. Each writes its stripe into a new file beside the old one. When all
 * have written, rank 0 syncs the new file and renames it. So a reader finds the old file or the new
 * one, whole, at any time, also after a crash: rename is atomic and comes after fsync, and the
 * directory is synced after it.
 * A rank that fails, or sees the operation fail, removes the new file. It stays only if all ranks
 * die at once.
 * Cost: the writes, one fsync of the file and one of the directory. */
#include "disk/call.h"

#include "arena/heap.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITING, WAITS_FOR_OTHERS, SYNCING, SYNCING_NAME, TOLD };
enum { NAME_MOST = 4096 };

/* ---- rank 0: the new file ---- */

/* The absolute name of a file that is not there yet: other ranks may have another working
 * directory. */
static uint64_t new_target(struct disk_call *d)
{
    char *copy = strdup(d->path), *other = strdup(d->path);
    char *folder = copy ? realpath(dirname(copy), NULL) : NULL;
    int error = folder ? -ENOMEM : -errno;
    if (folder && other
        && asprintf(&d->target, "%s/%s", strcmp(folder, "/") ? folder : "", basename(other)) < 0)
        d->target = NULL;
    free(folder);
    free(other);
    free(copy);
    return d->target ? 0 : disk_outcome(DISK_CREATE, error, 0);
}

/* The file that the path leads to: through a link the file is replaced, not the link. */
static uint64_t find_target(struct disk_call *d, mode_t *mode)
{
    struct stat st;
    *mode = 0;
    if (stat(d->path, &st) < 0)
        return errno == ENOENT ? new_target(d) : disk_outcome(DISK_CREATE, -errno, 0);
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? disk_outcome(DISK_RENAME, -EISDIR, 0)
                                   : disk_outcome(DISK_KIND, -EINVAL, 0);
    *mode = st.st_mode & 07777;
    d->target = realpath(d->path, NULL);
    return d->target ? 0 : disk_outcome(DISK_CREATE, -errno, 0);
}

/* The name of this operation's new file, beside d->target. It is made from the arena's birth, the
   comm's birth and the number: each rank knows it from the beginning, and no other job has it. */
static void name_it(struct coll *c)
{
    struct disk_call *d = c->disk;
    const uint64_t which[3] = { c->comm->world->arena.header->birth, c->comm->birth,
                                c->op.claim.seq };
    char *copy = d->target ? strdup(d->target) : NULL;
    if (!copy
        || asprintf(&d->name, "%s/.tutti-save-%016llx", dirname(copy),
                    (unsigned long long)text_hash(which, sizeof which, 3))
            < 0)
        d->name = NULL;
    free(copy);
}

static uint64_t make_file(struct coll *c)
{
    struct disk_call *d = c->disk;
    name_it(c);
    d->file = kept_of(
        d->name ? open(d->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666) : -1);
    int error = d->name ? -errno : -ENOMEM;
    d->there = d->file.fd >= 0;
    return d->there ? 0 : disk_outcome(DISK_CREATE, error, 0);
}

/* By pieces: where files are memory, older kernels end the call with EINTR for a signal or for work
 * of their own, and undo all of it; one call for all the bytes might never get through. */
static int reserve(int fd, uint64_t bytes)
{
    const uint64_t piece = 4 << 20;
    uint64_t at = 0;
    while (at < bytes) {
        uint64_t some = bytes - at < piece ? bytes - at : piece;
        int r = posix_fallocate(fd, (off_t)at, (off_t)some);
        if (r && r != EINTR)
            return -r;
        at += r ? 0 : some;
    }
    return 0;
}

/* Reserves the room before the first write: a full disk is found at once. */
static uint64_t make_room(const struct disk_call *d, mode_t mode)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && d->size > most.rlim_cur)
        return disk_outcome(DISK_ROOM, -EFBIG, 0);   /* else SIGXFSZ would end the process */
    if (mode && fchmod(d->file.fd, mode) < 0)
        return disk_outcome(DISK_CREATE, -errno, 0);
    int r = reserve(d->file.fd, d->size);
    return r ? disk_outcome(DISK_ROOM, r, 0) : 0;
}

/* Publishes its name for the other ranks. */
static uint64_t publish_name(struct coll *c)
{
    struct disk_call *d = c->disk;
    struct world *world = c->comm->world;
    int error;
    char *at = heap_alloc(world->heap, strlen(d->name) + 1, &error);
    if (!at)
        return disk_outcome(DISK_MEMORY, error, 0);
    memcpy(at, d->name, strlen(d->name) + 1);
    d->at = (uint64_t)(at - world->arena.base);
    return 0;
}

static uint64_t begin_file(struct coll *c, uint64_t *which)
{
    struct disk_call *d = c->disk;
    mode_t mode;
    uint64_t outcome = find_target(d, &mode), size;
    if (!outcome)
        outcome = make_file(c);
    if (!outcome)
        outcome = make_room(d, mode);
    int r = outcome ? 0 : disk_which(kept_fd(&d->file), which, &size);
    if (r < 0)
        outcome = disk_outcome(DISK_CREATE, r, 0);
    return outcome ? outcome : publish_name(c);
}

/* ---- the others ---- */

static uint64_t open_file(struct coll *c)
{
    struct disk_call *d = c->disk;
    const char *at = coll_at(c, disk_said(c, 0, DISK_AT), 1);
    uint64_t which = 0, size;
    free(d->name);
    size_t room = at ? (size_t)(c->comm->world->arena.base + c->comm->world->arena.bytes - at) : 0;
    d->name = at ? strndup(at, room < NAME_MOST ? room : NAME_MOST) : NULL;
    d->file = kept_of(d->name ? open(d->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1);
    if (d->file.fd < 0)
        return disk_outcome(DISK_CREATE, d->name ? -errno : -ENOMEM, 0);
    int r = disk_which(d->file.fd, &which, &size);
    if (r < 0)
        return disk_outcome(DISK_CREATE, r, 0);
    if (which != disk_said(c, 0, DISK_WHICH))
        return disk_outcome(DISK_OTHER, -ESTALE, 0);
    d->there = true;
    return 0;
}

/* ---- the steps ---- */

static void save_start(struct coll *c)
{
    mode_t mode;
    uint64_t which = 0, outcome = c->comm->watch.me == 0 ? begin_file(c, &which) : 0;
    /* rank 0 may die before it has published the name */
    if (c->comm->watch.me && !find_target(c->disk, &mode)) {
        name_it(c);
        c->disk->there = c->disk->name != NULL;
    }
    disk_say(c, DISK_AT, c->disk->at);
    disk_say(c, DISK_WHICH, which);
    disk_say(c, DISK_START, outcome);
    if (fingerprint_hashed(c->op.claim.descriptor))
        /* relaxed: E1 publishes it */
        store_relaxed64(&watch_arrival(&c->comm->watch, c->comm->watch.me, c->op.claim.seq)
                             ->payload[COUNT_WORD],
                        c->op.claim.count);
    disk_claim(c);
}

static int save_write(struct coll *c, uint64_t *outcome)
{
    struct disk_call *d = c->disk;
    const struct watch *w = &c->comm->watch;
    if (!d->begun) {
        *outcome = disk_said(c, 0, DISK_START) ? disk_said(c, w->me, DISK_START)
            : w->me ? open_file(c)
            : 0;
        if (*outcome || disk_said(c, 0, DISK_START))
            return DONE;
    }
    struct stripe_plan plan = { d->file, KEPT_NONE, true, (char *)(uintptr_t)d->from, 0, 0 };
    stripe_share(d->size, w->size, w->me, &plan.from, &plan.to);
    return disk_stripe(c, &plan, DISK_MEMORY, outcome);
}

/* Rank 0, after all others: have all written, so that the file can get its name? */
static bool all_wrote(const struct coll *c, uint64_t mine)
{
    for (uint32_t p = 1; p < c->comm->watch.size; p++)
        if (disk_said(c, p, DISK_OUTCOME))
            return false;
    return !mine && !disk_said(c, 0, DISK_START);
}

static uint64_t take_name(struct disk_call *d)
{
    if (rename(d->name, d->target) < 0)
        return disk_outcome(DISK_RENAME, -errno, 0);
    d->there = false;
    char *copy = strdup(d->target);
    kept_close(&d->file);
    /* a directory that cannot be opened cannot be synced */
    d->file = kept_of(copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    free(copy);
    return 0;
}

/* WAITING, or DONE with *outcome. */
static int save_finish(struct coll *c, uint64_t *outcome)
{
    struct disk_call *d = c->disk;
    for (;;)
        switch (d->step) {
        case WAITS_FOR_OTHERS:
            if (disk_all_told(c, 0) == WAITING)
                return WAITING;
            if (!all_wrote(c, *outcome))
                return DONE;
            stripe_sync(&d->stripe, &d->file);
            d->step = SYNCING;
            break;
        case SYNCING:
        case SYNCING_NAME:
            if (disk_transfer(c) == WAITING)
                return WAITING;
            if (d->stripe.error) {
                *outcome = disk_outcome(DISK_SYNC, d->stripe.error, 0);
                return DONE;
            }
            if (d->step == SYNCING_NAME)
                return DONE;
            *outcome = take_name(d);
            if (*outcome || d->file.fd < 0)
                return DONE;
            stripe_sync(&d->stripe, &d->file);
            d->step = SYNCING_NAME;
            break;
        default: return DONE;
        }
}

static int save_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    struct disk_call *d = c->disk;
    uint64_t outcome = 0;
    if (c->phase == GATE_START)
        save_start(c);
    if (c->phase != AFTER_GATE) {
        if (c->gate->advance(op) == WAITING)
            return WAITING;
        c->phase = AFTER_GATE;
    }
    if (d->step == WRITING) {
        int r = save_write(c, &outcome);
        if (r != DONE)
            return r;
        d->step = op->watch->me == 0 ? WAITS_FOR_OTHERS : TOLD;
        d->wrote = outcome;
        if (d->step == TOLD)
            disk_tell(c, outcome);
    }
    if (d->step != TOLD) {
        outcome = d->wrote;
        if (save_finish(c, &outcome) == WAITING)
            return WAITING;
        d->step = TOLD;
        disk_tell(c, outcome);
    }
    if (disk_all_told(c, -1) == WAITING)
        return WAITING;
    c->answer = disk_judge(c);
    return DONE;
}

const struct algorithm disk_save_stripes = {
    "stripes", KIND_SAVE, SIZE_MAX, save_advance, NULL, NULL,
    .help = "each rank writes its share beside the old file; rank 0 syncs and renames"
};

static void save_over(struct coll *c, int result)
{
    struct disk_call *d = c->disk;
    if (!d)
        return;
    d->there &= result < 0 || c->answer < 0;
    if (c->comm->watch.me == 0 && d->at)
        heap_free(c->comm->world->heap, c->comm->world->arena.base + d->at);
    disk_call_end(d);   /* writes left under way go to a file without a name */
    c->disk = NULL;
    c->ways = NULL;
}

static const struct call_ways save_ways = { disk_choose, disk_keep, save_over };

int disk_save(struct coll *c, struct tutti_comm *comm, const char *path, const void *data,
              size_t bytes)
{
    struct disk_call *d = disk_describe(c, comm, path, &disk_save_stripes, &save_ways);
    if (!d)
        return -ENOMEM;
    d->from = data;
    d->size = bytes;
    return 0;
}
