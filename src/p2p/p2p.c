/* A blocking call with nothing else under way first tries the fast path: one letter, no list, clock
 * or lock. Then come the lists, then spin, yields and slices as in every other wait. A rank sleeps
 * on one word for all peers, its bell, which is rung for any change that concerns it.
 * Cost for the rank that rings: a fence, which it needs anyway, and one load of a line that seldom
 * changes. */
#include "p2p/p2p.h"

#include "group/timed_wait.h"

#include <errno.h>
#include <stdlib.h>

void post_append(struct post_list *list, struct post *post)
{
    post->in = list;
    post->next = NULL;
    post->prev = list->tail;
    if (list->tail)
        list->tail->next = post;
    else
        list->head = post;
    list->tail = post;
}

void post_remove(struct post *post)
{
    struct post_list *list = post->in;
    if (post->prev)
        post->prev->next = post->next;
    else
        list->head = post->next;
    if (post->next)
        post->next->prev = post->prev;
    else
        list->tail = post->prev;
    post->in = NULL;
}

void post_over(struct p2p *p, struct post *post, int result)
{
    if (post->in)
        post_remove(post);
    post->over = true;
    post->result = result;
    if (post->work) {
        post->next = p->ended;
        p->ended = post;
    }
}

void lane_wake(struct p2p *p, struct lane *lane)
{
    if (lane->active)
        return;
    lane->active = true;
    lane->next_active = p->active;
    p->active = lane;
}

int p2p_open(struct tutti_comm *comm)
{
    if (comm->p2p)
        return 0;
    uint32_t size = comm->watch.size;
    struct p2p *p = calloc(1, sizeof *p);
    struct lane *lanes = calloc(size, sizeof *lanes);
    uint32_t *seen = calloc(size, sizeof *seen);
    if (!p || !lanes || !seen) {
        free(p);
        free(lanes);
        free(seen);
        return -ENOMEM;
    }
    p->comm = comm;
    p->watch = &comm->watch;
    p->pieces = PIECES_ALL / size > PIECES_MOST ? PIECES_MOST
        : PIECES_ALL / size < PIECES_LEAST ? PIECES_LEAST
        : PIECES_ALL / size;
    p->lanes = lanes;
    p->seen = seen;
    p->parcels_end = &p->parcels;
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_lock(&comm->world->lock);          /* the progress thread may be looking */
    comm->p2p = p;
    pthread_mutex_unlock(&comm->world->lock);
    return 0;
}

void p2p_close(struct tutti_comm *comm)
{
    struct p2p *p = comm->p2p;
    if (!p)
        return;
    pthread_mutex_lock(&comm->world->lock);
    comm->p2p = NULL;
    pthread_mutex_unlock(&comm->world->lock);
    pthread_mutex_lock(&p->lock);       /* the thread that ended the last work may still hold it */
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_destroy(&p->lock);
    for (struct parcel *parcel = p->parcels, *next; parcel; parcel = next) {
        next = parcel->next;
        free(parcel);
    }
    for (struct offer_page *page = p->pages, *next; page; page = next) {
        next = page->next;
        free(page->offers);
        free(page);
    }
    for (uint32_t q = 0; q < comm->watch.size; q++)
        free(p->lanes[q].hand);
    free(p->seen);
    free(p->lanes);
    free(p);
}

void p2p_begin(struct p2p *p, struct post *post)
{
    if (post->kind != KIND_SEND) {
        match_begin(p, post);
        return;
    }
    struct lane *lane = p2p_lane(p, (uint32_t)post->peer);
    int r = lane->unsent.head ? 0 : lane_send(p, lane, post);
    if (r < 0)
        post_over(p, post, p2p_fail(p, post, r));
    if (r == 0) {
        post_append(&lane->unsent, post);
        lane_wake(p, lane);
    }
}

bool p2p_pump(struct p2p *p)
{
    bool moved = false;
    for (struct lane **at = &p->active; *at;) {
        struct lane *lane = *at;
        if (lane->unsent.head || lane->offered.head)
            moved |= lane_push(p, lane);
        if (lane->moving.head)
            moved |= lane_collect(p, lane);
        lane->active = lane->unsent.head || lane->offered.head || lane->moving.head;
        if (lane->active)
            at = &lane->next_active;
        else
            *at = lane->next_active;
    }
    struct lane *self = p2p_lane(p, p->watch->me);
    if (self->unsent.head)
        moved |= match_lane(p, self, true);          /* only this rank makes room there */
    if (p->posted.head)
        moved |= match_posted(p);
    return moved;
}

bool p2p_stuck(const struct p2p *p, const struct post *post)
{
    const struct watch *w = p->watch;
    bool waits = !post->over && !post->moving && !timeout_given(post->timeout_ns);
    return waits && (post->peer == (int)w->me || (post->peer == TUTTI_ANY && w->size == 1));
}

/* The word whose value lets the post go on; NULL: there are several. */
static const shared64 *post_word(struct p2p *p, const struct post *post, uint64_t *value)
{
    if (post->kind != KIND_SEND) {
        if (!post->moving)
            return post->peer == TUTTI_ANY ? NULL
                                           : lane_word(p, p2p_lane(p, (uint32_t)post->peer), value);
        *value = post->start + post->piece + 1;
        return &p2p_lane(p, post->sender)->in->filled;
    }
    const struct lane *lane = p2p_lane(p, (uint32_t)post->peer);
    if (post->in == &lane->unsent) {
        *value = lane->taken + 1;
        return &lane->out->taken;
    }
    if (post_staged(post)) {
        *value = lane->filled - p->pieces + 1;
        return &lane->out->drained;
    }
    *value = deal_word(post->offer->generation, post->moving ? DEAL_DONE : DEAL_GRANTED);
    return &post->offer->deal->state;
}

/* nothing came | the word that was spun on has changed | something else has moved */
enum spin { SPIN_VAIN, SPIN_CAME, SPIN_MOVED };

/* Spins for a letter, or for the first chunk of its message (overlap.c). */
static enum spin run_spin_overlap(struct p2p *p, const struct post *post)
{
    enum { TURN = 16 };
    struct lane *lane = p2p_lane(p, (uint32_t)post->peer);
    struct wait_turns turns = { 0 };
    overlap_wait(lane);
    do {
        uint64_t value;
        const shared64 *word = lane_word(p, lane, &value);
        for (int i = 0; i < TURN; i++) {
            /* E35 acquire, E41 acquire */
            if (load_acquire64(word) >= value || overlap_begun(lane))
                return SPIN_CAME;
            cpu_pause();
        }
    } while (wait_turn(&turns, &p->watch->budget, p->watch->ways));
    return SPIN_VAIN;
}

/* Spins with the budget of every wait. Deaths and deadlines are looked at after it. */
static enum spin run_spin(struct p2p *p, const struct post *post)
{
    static const shared64 no_verdict;
    static const shared32 no_news;
    struct watch *w = p->watch;
    uint64_t value = 0;
    const shared64 *word = post_word(p, post, &value);
    if (word && post->kind == KIND_RECV && !post->moving && post->bytes >= OVERLAP_LEAST
        && w->budget.spin_ticks)
        return run_spin_overlap(p, post);
    if (word)
        return wait_spin(word, value, (struct wait_ends){ &no_verdict, &no_news }, &w->budget,
                         w->ways)
            ? SPIN_CAME
            : SPIN_VAIN;
    struct wait_turns turns = { 0 };
    do {
        if (p2p_pump(p))
            return SPIN_MOVED;
    } while (wait_turn(&turns, &w->budget, w->ways));
    return p2p_pump(p) ? SPIN_MOVED : SPIN_VAIN;
}

/* One slice of sleep. 0: look again. -errno: the wait is over. */
static int run_sleep(struct p2p *p, struct post *post, struct timed_wait *patience)
{
    struct member *mine = p->watch->mine;
    bool gone = p2p_gone(p, post, timed_wait_slice(patience));       /* E5: before its letters */
    fetch_add32(&mine->listeners, 1);                /* E40 */
    fence_full();                                    /* E40 fence */
    uint32_t bell = load_acquire32(&mine->bell);     /* E40 acquire */
    int r = 0;
    patience->timeout_ns = post->moving ? -1 : post->timeout_ns;
    patience->kind = post->moving ? KIND_NONE : post->kind;
    if (p2p_pump(p) || post->over) {
        patience->slices = 0;
        timed_wait_moved(patience);
    } else if (gone) {
        /* a rank that aborted and then left counts as aborted */
        r = timed_wait_check(patience, post->peer, post_what(post));
        r = r < 0 ? r : -EOWNERDEAD;
    }
    else
        r = timed_wait_doze(patience, &mine->bell, bell, post_other(post), post_what(post));
    fetch_sub32(&mine->listeners, 1);                /* E40 */
    return r;
}

/* If a word has changed but nothing moves, it sleeps: only a sleep looks at deadlines, deaths and
 * aborts. */
static int run_wait(struct p2p *p, struct post *post, struct timed_wait *patience)
{
    for (enum spin last = SPIN_VAIN;;) {
        if (p2p_pump(p)) {
            timed_wait_moved(patience);
            last = SPIN_MOVED;
            if (!post->over)
                continue;
        }
        if (post->over)
            return post->result;
        if (p2p_stuck(p, post)) {
            p2p_expire(p, post, -EDEADLK);
            continue;
        }
        if (patience->slices == 0 && last != SPIN_CAME && (last = run_spin(p, post)) != SPIN_VAIN)
            continue;
        int r = run_sleep(p, post, patience);
        if (r == -ETIMEDOUT)
            p2p_expire(p, post, r);
        else if (r == -EDEADLK && !patience->broken)
            p2p_withdraw(p, post, r);   /* a post whose message is matched meanwhile goes on */
        else if (r < 0)
            p2p_abandon(p, post, patience->broken || r == -EINTR ? r : p2p_fail(p, post, r));
    }
}

int p2p_run(struct p2p *p, struct post *post)
{
    const struct note note = {
        post->peer, post->tag, post->type, post->site, post->bytes, post->width
    };
    if (post->kind == KIND_RECV && match_now(p, &note, post->to, post->got))
        return 0;
    p2p_begin(p, post);
    if (post->over)
        return post->result;
    post->waited = true;
    struct timed_wait patience = timed_wait_begin(p->comm, post->timeout_ns);
    patience.site = post->site;
    int r = run_wait(p, post, &patience);
    timed_wait_moved(&patience);
    return r;
}
