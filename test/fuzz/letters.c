/* What a rank receives from one that has written over its own channel: letters, their places, the
 * ring that follows, deals. A receive gives a message or an error; it never reads or writes outside
 * of what can be the sender's. Both ranks are this process's, played by one thread. */
#include "fuzz.h"

#include "engine/progress.h"
#include "arena/span.h"
#include "p2p/p2p.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static tutti_comm *rank[2];
static char job[40];
static sem_t joined;

static void *joins(void *arg)
{
    int me = (int)(intptr_t)arg;
    const tutti_options options = {
        .job = job, .rank = me, .size = 2, .span_bytes = 16 << 20, .timeout_ms = 1, .warn_ms = -1
    };
    FUZZ_MUST(tutti_init(&rank[me], &options) == 0);
    sem_post(&joined);
    while (me)
        pause();                                     /* the mark of rank 1 is this thread's */
    return NULL;
}

static void open_once(void)
{
    pthread_t thread;
    if (rank[0])
        return;
    snprintf(job, sizeof job, "fuzz.%d", (int)getpid());
    setenv("TUTTI_STORE_BYTES", "2M", 1);
    setenv("TUTTI_SPIN_US", "0", 1);
    setenv("TUTTI_MEET", "", 1);
    sem_init(&joined, 0, 0);
    FUZZ_MUST(pthread_create(&thread, NULL, joins, (void *)(intptr_t)1) == 0);
    joins(NULL);
    sem_wait(&joined);
    sem_wait(&joined);
    pthread_detach(thread);
}

/* As when nothing had ever been sent. */
static void forget(tutti_comm *c)
{
    progress_quiesce(c->world);
    p2p_close(c);
    for (struct held *held = c->stage.held, *next; held; held = next) {
        next = held->next;
        span_give(c->world->span, held->at);
        free(held);
    }
    c->stage.held = NULL;
    store_release64(&c->watch.mine->mail, 0);
    fetch_and32(&c->watch.attention, ~(uint32_t)ATTENTION_BROKEN);
    store_release64(&c->watch.slot->verdict, 0);
    store_release32(&c->watch.mine->quit, 0);
}

static void scribble(struct feed *feed, struct p2p *p, uint8_t where)
{
    struct lane *lane = &p->lanes[0];
    struct feed part = { feed->at, feed->left < 300 ? feed->left / 2 : 150 };
    feed->at += part.left;
    feed->left -= part.left;
    if ((where & 1) && lane->out)
        feed_scribble(&part, lane->out, 4096);
    if ((where & 2) && lane->out)
        feed_scribble(&part, lane->write.at, lane->write.size * sizeof(struct letter));
    if ((where & 4) && p->pages)
        feed_scribble(&part, (void *)p->pages->offers[0].deal, 256);
    if ((where & 8) && p->table)
        feed_scribble(&part, (void *)p->table, 16);
    if (where & 16)
        feed_scribble(&part, &p->watch->mine->mail, sizeof(shared64));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[300000], in[300000];
    tutti_work *works[16] = { NULL }, *late[16] = { NULL };
    struct feed feed = { data, size };
    open_once();
    uint8_t where = feed_byte(&feed);
    int letters = 1 + feed_byte(&feed) % 40, large = 0, asked = 0;
    for (int i = 0; i < letters; i++) {
        uint8_t what = feed_byte(&feed);
        if (what % 8 == 7 && large < 4)
            tutti_send(out, 70000 + 50000u * (what >> 6), TUTTI_U8, 0, what % 3, rank[1],
                       &(tutti_call){ .work = &works[large++] });
        else
            tutti_send(out, what % 8 == 6 ? 5000 : what % 90, TUTTI_U8, 0, what % 3, rank[1], NULL);
    }
    FUZZ_MUST(rank[1]->p2p);
    scribble(&feed, rank[1]->p2p, where);
    while (feed.left && asked < 16) {
        uint8_t what = feed_byte(&feed);
        tutti_message got = { 0 };
        size_t room = what & 4 ? sizeof in : 100;
        int from = what & 8 ? TUTTI_ANY : 1, tag = what & 16 ? TUTTI_ANY : what % 3;
        int r = what & 32
            ? tutti_probe(from, tag, &got, rank[0], &(tutti_call){ .work = &late[asked] })
            : tutti_recv(in, room, TUTTI_U8, from, tag, &got, rank[0],
                         &(tutti_call){ .work = &late[asked] });
        if (r < 0)
            break;
        asked++;
        for (int i = 0; i < large; i++)         /* both sides in turn, so that large ones move */
            tutti_test(works[i]);
    }
    for (int i = 0; i < asked; i++)
        tutti_wait(late[i], -1);
    for (int i = 0; i < large; i++)
        if (works[i])
            tutti_wait(works[i], -1);
    forget(rank[0]);
    forget(rank[1]);
    return 0;
}
