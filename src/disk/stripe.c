/* A piece in the page cache is copied from there, at memory speed. Any other piece is read past the
 * cache: a file needed once then does not take its size twice. cachestat (Linux 6.5) says which; on
 * older kernels a read of one byte that does not wait.
 * Cost: eight pieces of 2 MiB under way keep a disk busy. One look submits at most STRIPE_LOOK of
 * them, so the rank soon looks again for a death or an abort. */
#include "disk/stripe.h"

#include "os/memory.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STRIPE_LOOK = 8, UNIT_LARGE = STRIPE_PIECE, STRIPE_AHEAD = 32 << 20 };

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

void stripe_share(uint64_t size, uint32_t ranks, uint32_t me, uint64_t *from, uint64_t *to)
{
    uint64_t unit = size / ranks >= UNIT_LARGE ? UNIT_LARGE : STRIPE_PAGE,
             units = (size + unit - 1) / unit;
    uint64_t first = units * me / ranks * unit, behind = units * (me + 1) / ranks * unit;
    *from = first < size ? first : size;
    *to = behind < size ? behind : size;
}

int stripe_begin(struct stripe *s, const struct stripe_plan *plan)
{
    int error = 0;
    *s = (struct stripe){ .plan = *plan, .next = plan->from, .present = plan->from };
    s->transfer = transfer_open(STRIPE_DEPTH, &error);
    return s->transfer ? 0 : error;
}

/* True: most of the piece is in the page cache. */
static bool is_cached(int fd, uint64_t offset, size_t bytes)
{
    struct { uint64_t offset, bytes; } range = { offset, bytes };
    struct { uint64_t cached, dirty, written, evicted, lately; } is;
    if (syscall(SYS_cachestat, fd, &range, &is, 0) == 0)
        return is.cached * memory_page() >= bytes / 2;
    char byte;
    struct iovec one = { &byte, 1 };
    return syscall(SYS_preadv2, fd, &one, 1, (long)offset, 0L, RWF_NOWAIT) >= 0 || errno != EAGAIN;
}

static void fail(struct stripe *s, int error, uint64_t at)
{
    if (s->error)
        return;
    s->error = error;
    s->error_at = at;
}

static void hand_over(struct stripe *s, unsigned slot)
{
    uint64_t offset = s->piece[slot].offset;
    size_t bytes = s->piece[slot].bytes;
    bool direct = s->piece[slot].direct;
    int fd = kept_fd(direct ? &s->plan.direct : &s->plan.file);
    struct transfer_piece piece = {
        s->plan.write ? TRANSFER_WRITE : TRANSFER_READ, fd, s->plan.at + offset,
        direct ? (bytes + STRIPE_PAGE - 1) / STRIPE_PAGE * STRIPE_PAGE : bytes, offset
    };
    int r = fd < 0 ? fd : transfer_give(s->transfer, &piece, slot);
    if (r < 0)
        fail(s, r, offset);
    else
        s->busy |= 1u << slot;
}

/* Makes the memory present up to `behind`, and some more. In huge pages if possible: each rank then
   maps 2 MiB by one page fault. One request costs the same for one page as for many, so it asks for
   a dozen: some 4 ms. */
static int make_present(struct stripe *s, uint64_t behind)
{
    int r = 0;
    while (r == 0 && s->present < behind) {
        uint64_t left = s->plan.to - s->present;
        size_t bytes = left < STRIPE_AHEAD ? (size_t)left : STRIPE_AHEAD, huge;
        char *at = s->plan.at + s->present;
        r = bytes >= MEMORY_HUGE_FROM
            ? memory_populate_huge(at, bytes, s->present / MEMORY_HUGE_PAGE, &huge)
            : memory_populate(at, bytes);
        s->present += bytes;
    }
    return r;
}

static void next_piece(struct stripe *s)
{
    unsigned slot = (unsigned)__builtin_ctz(~s->busy);
    uint64_t left = s->plan.to - s->next;
    size_t bytes = left < STRIPE_PIECE ? (size_t)left : STRIPE_PIECE;
    int r = s->plan.write ? 0 : make_present(s, s->next + bytes);
    if (r < 0) {
        fail(s, r, s->next);
        return;
    }
    s->piece[slot].offset = s->next;
    s->piece[slot].bytes = bytes;
    s->piece[slot].direct = s->plan.direct.fd >= 0 && !s->indirect && s->next % STRIPE_PAGE == 0
        && !is_cached(s->plan.file.fd, s->next, bytes);
    s->next += bytes;
    hand_over(s, slot);
}

/* True: the descriptor is the same file after the read as before it, so it was during the read. */
static bool was_read_of_it(const struct stripe *s, unsigned slot)
{
    return s->plan.write || kept_is(s->piece[slot].direct ? &s->plan.direct : &s->plan.file);
}

static void piece_ended(struct stripe *s, const struct transfer_end *end)
{
    unsigned slot = end->tag;
    s->busy &= ~(1u << slot);
    uint64_t offset = s->piece[slot].offset;
    if (!was_read_of_it(s, slot)) {
        fail(s, -EBADF, offset);
        return;
    }
    size_t wanted = s->piece[slot].bytes, got = end->result > 0 ? (size_t)end->result : 0;
    got = got < wanted ? got : wanted;          /* a piece past the cache is read by whole pages */
    if (end->result == -EINVAL && s->piece[slot].direct)
        s->indirect = true;                     /* from now on through the cache */
    else if (end->result < 0 && end->result != -EAGAIN && end->result != -EINTR) {
        fail(s, (int)end->result, offset);
        return;
    }
    if (end->result == 0) {
        s->ended |= !s->error && !s->plan.write;
        fail(s, -EIO, offset);
        return;
    }
    s->moved += got;
    if (got == wanted || s->error)
        return;
    s->piece[slot].offset += got;
    s->piece[slot].bytes -= got;
    s->piece[slot].direct = false;
    hand_over(s, slot);
}

/* Takes the pieces that have ended. True: there were some. */
static bool take_ends(struct stripe *s)
{
    struct transfer_end end;
    bool any = false;
    s->seen = s->ends ? load_acquire64(s->ends) : 0;
    while (transfer_take(s->transfer, &end)) {
        any = true;
        if (!s->syncing) {
            piece_ended(s, &end);
            continue;
        }
        s->busy = 0;
        if (end.result < 0)
            fail(s, (int)end.result, s->plan.to);
    }
    return any;
}

/* Submits more pieces, as many as a look may, or as there is room for. Returns how many. */
static int give_pieces(struct stripe *s, int most)
{
    int given = 0;
    for (; given < most && !s->error && s->next < s->plan.to && s->busy != (1u << STRIPE_DEPTH) - 1;
         given++)
        next_piece(s);
    return given;
}

int stripe_advance(struct stripe *s)
{
    int given = 0;
    do {
        bool any = take_ends(s);
        int now = give_pieces(s, STRIPE_LOOK - given);
        given += now;
        s->idle = !any && now == 0;
        if (s->idle && s->busy && !s->ends && (s->ends = transfer_ends(s->transfer)))
            s->idle = false;            /* earlier ends are not in that count: look once more */
    } while (!s->idle && given < STRIPE_LOOK);
    return s->busy == 0 && (s->error || s->next == s->plan.to);
}

void stripe_sync(struct stripe *s, const struct kept *file)
{
    int fd = kept_fd(file);
    const struct transfer_piece sync = { TRANSFER_SYNC, fd, NULL, 0, 0 };
    s->syncing = true;
    int r = fd < 0 ? fd : transfer_give(s->transfer, &sync, 0);
    if (r < 0)
        fail(s, r, s->plan.to);
    else
        s->busy = 1;
}

void stripe_end(struct stripe *s)
{
    transfer_close(s->transfer);
    s->transfer = NULL;
}
