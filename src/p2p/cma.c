/* A large message read out of its sender's private memory (process_vm_readv): one copy, where the
 * stage takes two, but the system has to find each page first. Which is faster the receiver finds
 * out by doing both (base/tuner.h).
 *
 * The sender stays in its call until the deal is done, and says so by the deal's state before it
 * returns for another reason: what was read is the message if the deal still stood when all was
 * read. Its process is known by its identity, read in the same call as the data. Where it cannot be
 * read at all, this time or ever, the data come through the stage; of a sender that is gone nothing
 * comes there, which is found out as for any other.
 *
 * Not where ranks share CPUs: what comes through the stage waits for the sender's turns there, so
 * that reading seems to be faster by far, while it keeps the CPU from those who would send.
 * Measured, 8 ranks on 2 CPUs, both ways at once: 1 MiB 1064 us so, 817 by the stage alone, 16 MiB
 * 18 ms and 11. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "group/place.h"
#include "os/vm_read.h"

#include <errno.h>

enum { STRETCH = 4 << 20 };                 /* what is read before the deal is looked at again */
/* Through the stage the sender does half of the work, and what it costs a receiver to read all by
   itself shows when both send at once: measured so, reads that had seemed a little faster made 1
   MiB 200 us instead of 160. */
enum { CMA_WORTH = 2 };

void cma_offer(const struct p2p *p, const struct post *post, struct envelope *e)
{
    if (post->bytes < CMA_LEAST || p->comm->coll.devices)
        return;
    e->rest.at = (uint64_t)(uintptr_t)post->from | CMA_BIT;
    e->rest.end = (uint64_t)(uintptr_t)&p->comm->world->self;
}

bool cma_choose(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e)
{
    bool can = e->rest.at != NOT_IN_ARENA && !lane->shut && !p->comm->crowded;
    post->ways = can ? tuner_of(p->ways, e->bytes, CMA_LEAST) : NULL;
    post->granted_tick = post->ways ? clock_tick() : 0;
    return post->ways && tuner_choose(post->ways, CMA_WORTH);
}

/* 0, 1: the deal stands no more, or -errno. */
static int cma_read(const struct p2p *p, const struct post *post, const struct envelope *e)
{
    const struct process_id *id = &p->watch->seats[post->sender]->id;
    const struct vm_known known = { id, sizeof *id, e->rest.end };
    for (size_t at = 0, n; at < e->bytes; at += n) {
        n = e->bytes - at < STRETCH ? e->bytes - at : STRETCH;
        /* E37 acquire */
        if (load_acquire64(&post->deal->state) != deal_word(post->generation, DEAL_GRANTED))
            return 1;
        int r = vm_read_known(id->pid, known, post->to + at, (e->rest.at & ~CMA_BIT) + at, n);
        if (r < 0)
            return r;
    }
    return 0;
}

bool cma_take(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e)
{
    int r = cma_read(p, post, e);
    if (r < 0) {
        lane->shut = r != -EFAULT;
        post->ways = NULL;
        store_release64(&post->deal->start, lane->granted);          /* E37 release */
        fence_full();                                                /* E40 fence */
        p2p_ring(p, post->sender);
        return false;
    }
    if (r == 0
        && deal_step(p, post->sender, post->deal, post->generation, DEAL_GRANTED, DEAL_DONE)) {
        match_learn(post);
        post_over(p, post, 0);
    } else
        match_broken(p, post);
    return true;
}
