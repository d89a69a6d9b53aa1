/* The receiver reads a large message out of its sender's private memory (process_vm_readv). That is
 * one copy where the stage takes two, but the system has to find each page. The receiver tries both
 * and learns which is faster (base/tuner.h).
 *
 * The sender stays in its call until the deal is done. If it returns for another reason, it changes
 * the deal's state first: so the data are the message if the deal still stands after the read. The
 * process is checked by its identity, which is read in the same system call as the data.
 * If the memory cannot be read, the data come through the stage. If the sender is gone, nothing
 * comes there, and the receiver finds the death as for any message.
 *
 * Ranks that share CPUs do not read so. There a sender needs its turn on the CPU to fill the stage:
 * reading seems faster, but takes that turn away. Measured, 8 ranks on 2 CPUs, 1 MiB both ways:
 * 1064 us with reads, 817 us by the stage alone. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "group/place.h"
#include "os/vm_read.h"

#include <errno.h>

enum { STRETCH = 4 << 20 };                 /* bytes between two looks at the deal */
/* A read has to be clearly faster to be chosen. By the stage the sender does half of the work; by a
   read the receiver does all, which shows when both send at once: reads that seemed a little faster
   made 1 MiB take 200 us instead of 160 us. */
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

/* 0. 1: the deal no longer stands. -errno: the memory cannot be read. */
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
