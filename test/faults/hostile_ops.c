/* One of everything that ranks do together, small and large, in the arena and not, blocking
 * and as work. */
#include "hostile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tutti_queue *steps;
static char part_said[TEAM_TEXT];      /* the report of a comm that is freed by now */

tutti_queue *hostile_queue(void) { return steps; }

int hostile_room_open(struct hostile_room *room, tutti_comm *world)
{
    for (int i = 0; i < 3; i++) {
        room->arena[i] = tutti_alloc(HOSTILE_BYTES, world);
        room->own[i] = calloc(1, HOSTILE_BYTES);
        if (!room->arena[i] || !room->own[i])
            return -ENOMEM;
        memset(room->arena[i], 0, HOSTILE_BYTES);
    }
    return tutti_queue_create(world, 0, &(tutti_queue_options){ .room = 1 << 16 }, &steps);
}

void hostile_room_close(struct hostile_room *room, tutti_comm *world)
{
    tutti_queue_free(steps);
    for (int i = 0; i < 3; i++) {
        tutti_free(room->arena[i], world);
        free(room->own[i]);
    }
}

enum { SMALL = 5, FLAT = 1000, RING = 100000, LARGE = 400000 };      /* elements of 4 bytes */

struct place { char *send, *recv, *lists; };

static int barrier(tutti_comm *w, struct place p, uint64_t n)
{
    (void)p;
    (void)n;
    return tutti_barrier(w, NULL);
}

static int all_reduce(tutti_comm *w, struct place p, size_t count)
{
    return tutti_all_reduce(p.send, p.recv, count, TUTTI_I32, TUTTI_SUM, w, NULL);
}

static int all_reduce_small(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return all_reduce(w, p, SMALL);
}

static int all_reduce_eager(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return all_reduce(w, p, FLAT);
}

static int all_reduce_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return all_reduce(w, p, RING);
}

static int all_reduce_large(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return all_reduce(w, p, LARGE);
}

static int reduce_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    return tutti_reduce(p.send, p.recv, RING, TUTTI_I32, TUTTI_MAX,
                        (int)(n % (uint64_t)tutti_size(w)), w, NULL);
}
static int broadcast(tutti_comm *w, struct place p, size_t count, uint64_t n)
{
    return tutti_broadcast(p.recv, count, TUTTI_I32, (int)(n % (uint64_t)tutti_size(w)), w, NULL);
}

static int broadcast_small(tutti_comm *w, struct place p, uint64_t n)
{
    return broadcast(w, p, SMALL, n);
}

static int broadcast_eager(tutti_comm *w, struct place p, uint64_t n)
{
    return broadcast(w, p, FLAT, n);
}

static int broadcast_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    return broadcast(w, p, RING, n);
}

static int all_gather_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return tutti_all_gather(p.send, p.recv, 30000, TUTTI_I32, w, NULL);
}

static int all_to_all_eager(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return tutti_all_to_all(p.send, p.recv, 300, TUTTI_I32, w, NULL);
}

static int all_to_all_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return tutti_all_to_all(p.send, p.recv, 30000, TUTTI_I32, w, NULL);
}

static int scan_pipeline(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    return tutti_scan(p.send, p.recv, 30000, TUTTI_I32, TUTTI_SUM, w, NULL);
}

static int same(tutti_comm *w, struct place p, uint64_t n)
{
    (void)n;
    int r = tutti_same(p.send, 64, w, NULL);
    return r < 0 ? r : 0;
}

static int many(tutti_comm *w, struct place p, uint64_t n)
{
    enum { BUFFERS = 150 };            /* more than there are rows for */
    const void *send[BUFFERS];
    void *recv[BUFFERS];
    size_t counts[BUFFERS];
    int buffers = n & 1 ? BUFFERS : 7;
    for (int i = 0; i < buffers; i++) {
        send[i] = p.send + i * 10000;
        recv[i] = p.recv + i * 10000;
        counts[i] = n & 2 ? 2500 : 20;
    }
    return tutti_all_reduce_many(send, recv, counts, buffers, TUTTI_I32, TUTTI_SUM, w, NULL);
}

static void lists(tutti_comm *w, char *at, void *to[TEAM_MOST], size_t counts[TEAM_MOST],
                  size_t most)
{
    for (int q = 0; q < tutti_size(w); q++) {
        to[q] = at + (size_t)q * most * 4;
        counts[q] = most - (size_t)q;
    }
}

static int gather_v(tutti_comm *w, struct place p, uint64_t n)
{
    void *recv[TEAM_MOST];
    size_t counts[TEAM_MOST], most = n & 1 ? 40000 : 300;
    lists(w, p.lists, recv, counts, most);
    return tutti_gather_v(p.send, counts[tutti_rank(w)], recv, counts, TUTTI_I32,
                          (int)(n / 2 % (uint64_t)tutti_size(w)), w, NULL);
}

static int all_gather_v(tutti_comm *w, struct place p, uint64_t n)
{
    void *recv[TEAM_MOST];
    size_t counts[TEAM_MOST], most = n & 1 ? 40000 : 300;
    lists(w, p.lists, recv, counts, most);
    return tutti_all_gather_v(p.send, counts[tutti_rank(w)], recv, counts, TUTTI_I32, w, NULL);
}

static int all_to_all_v(tutti_comm *w, struct place p, uint64_t n)
{
    void *recv[TEAM_MOST], *send[TEAM_MOST];
    size_t counts[TEAM_MOST], out[TEAM_MOST], most = n & 1 ? 40000 : 300;
    lists(w, p.lists, recv, counts, most);
    lists(w, p.send, send, out, most);
    for (int q = 0; q < tutti_size(w); q++)
        counts[q] = most, out[q] = most;
    return tutti_all_to_all_v((const void *const *)send, out, recv, counts, TUTTI_I32, w, NULL);
}

/* To the next, from the one before, n bytes; as work, so that nobody waits in a circle. */
static int letter(tutti_comm *w, struct place p, size_t bytes)
{
    int size = tutti_size(w), me = tutti_rank(w);
    tutti_work *work = NULL;
    int r = tutti_send(p.send, bytes, TUTTI_U8, (me + 1) % size, 7, w,
                       &(tutti_call){ .work = &work });
    if (r < 0)
        return r;
    r = tutti_recv(p.recv, bytes, TUTTI_U8, (me + size - 1) % size, 7, NULL, w, NULL);
    int sent = tutti_wait(work, -1);
    return r < 0 ? r : sent;
}
static int letter_whole(tutti_comm *w, struct place p, uint64_t n) { return letter(w, p, n % 90); }

static int letter_stored(tutti_comm *w, struct place p, uint64_t n)
{
    return letter(w, p, 200 + n % 5000);
}

static int letter_large(tutti_comm *w, struct place p, uint64_t n)
{
    return letter(w, p, 700000 + n % 100);
}

static int letter_any(tutti_comm *w, struct place p, uint64_t n)
{
    int size = tutti_size(w), me = tutti_rank(w), to = (int)(n % (uint64_t)size), r = 0;
    for (int q = 0; q < size - 1 && me == to && r == 0; q++)
        r = tutti_recv(p.recv, 500, TUTTI_U8, TUTTI_ANY, (int)(n % 1000), NULL, w, NULL);
    return me == to ? r : tutti_send(p.send, 300, TUTTI_U8, to, (int)(n % 1000), w, NULL);
}

static int nothing(void *arg) { (void)arg; return 0; }

static int once(tutti_comm *w, struct place p, uint64_t n)
{
    char key[40];
    (void)p;
    snprintf(key, sizeof key, "key %d", (int)(n % 50));
    return tutti_once(key, nothing, NULL, w, NULL);
}

static int first(tutti_comm *w, struct place p, uint64_t n)
{
    (void)p;
    (void)n;
    int r = tutti_first_begin("first", w, NULL);
    return r == 1 ? tutti_first_end("first", 0, w) : r;
}

static int turn(tutti_comm *w, struct place p, uint64_t n)
{
    (void)p;
    (void)n;
    int r = tutti_turn_begin(w, NULL);
    return r < 0 ? r : tutti_turn_end(w);
}

static int store(tutti_comm *w, struct place p, uint64_t n)
{
    char key[40];
    int64_t now;
    size_t len = 5000;
    snprintf(key, sizeof key, "store %d %d", (int)(n % 40), tutti_rank(w));
    int r = tutti_set(key, p.send, (size_t)(n * 37 % 5000), w);
    if (r == 0)
        r = tutti_get(key, p.recv, &len, w, NULL);
    if (r == 0 && n % 3 == 0)
        r = tutti_delete(key, w);
    if (r == 0)
        r = tutti_add("sum", 1, &now, w);
    return r;
}

/* One sets a key that the others wait for. */
static int store_wait(tutti_comm *w, struct place p, uint64_t n)
{
    char key[40];
    size_t len = 100;
    snprintf(key, sizeof key, "wait %llu", (unsigned long long)n);
    if ((uint64_t)tutti_rank(w) == n % (uint64_t)tutti_size(w))
        return tutti_set(key, p.send, 100, w);
    return tutti_get(key, p.recv, &len, w, NULL);
}

static int split(tutti_comm *w, struct place p, uint64_t n)
{
    tutti_comm *part = NULL;
    int r = tutti_comm_split(w, n & 1 ? 0 : tutti_rank(w) > 0, 0, &part);
    if (r < 0)
        return r;
    r = all_reduce(part, p, n & 2 ? RING : SMALL);
    if (r < 0)
        snprintf(part_said, sizeof part_said, "%s", tutti_explain(part));
    int freed = tutti_comm_free(part);
    return r < 0 ? r : freed;
}

static int agree(tutti_comm *w, struct place p, uint64_t n)
{
    int flag = (int)n;
    (void)p;
    return tutti_comm_agree(w, &flag);
}

/* A step is put, and got by all others. Small ones lie in the ring, some of them in pieces, large
 * ones where they are lent. */
static int queue(tutti_comm *w, struct place p, size_t bytes)
{
    const tutti_call soon = { .timeout_ms = 600 };
    size_t room = HOSTILE_BYTES;
    return tutti_rank(w) == 0 ? tutti_queue_put(steps, p.send, bytes, &soon)
                              : tutti_queue_get(steps, p.recv, &room, &soon);
}

static int queue_small(tutti_comm *w, struct place p, uint64_t n) { return queue(w, p, n % 300); }

static int queue_pieces(tutti_comm *w, struct place p, uint64_t n)
{
    return queue(w, p, 20000 + n % 100000);
}

static int queue_lent(tutti_comm *w, struct place p, uint64_t n)
{
    return queue(w, p, HOSTILE_BYTES - n % 1000);
}

static int work(tutti_comm *w, struct place p, uint64_t n)
{
    tutti_work *one = NULL, *two = NULL;
    int r = tutti_all_reduce(p.send, p.recv, n & 1 ? RING : SMALL, TUTTI_I32, TUTTI_SUM, w,
                             &(tutti_call){ .work = &one });
    if (r < 0)
        return r;
    r = tutti_barrier(w, &(tutti_call){ .work = &two });
    int first_of = tutti_wait(one, -1), second = r < 0 ? 0 : tutti_wait(two, -1);
    return r < 0 ? r : first_of < 0 ? first_of : second;
}

static const struct {
    const char *name;
    int (*run)(tutti_comm *w, struct place p, uint64_t n);
} ops[] = {
    { "barrier", barrier },
    { "all_reduce small", all_reduce_small },
    { "all_reduce eager", all_reduce_eager },
    { "all_reduce pipelined", all_reduce_pipeline },
    { "all_reduce large", all_reduce_large },
    { "reduce pipelined", reduce_pipeline },
    { "broadcast small", broadcast_small },
    { "broadcast eager", broadcast_eager },
    { "broadcast pipelined", broadcast_pipeline },
    { "all_gather pipelined", all_gather_pipeline },
    { "all_to_all eager", all_to_all_eager },
    { "all_to_all pipelined", all_to_all_pipeline },
    { "scan pipelined", scan_pipeline },
    { "same", same },
    { "all_reduce_many", many },
    { "gather_v", gather_v },
    { "all_gather_v", all_gather_v },
    { "all_to_all_v", all_to_all_v },
    { "send small", letter_whole },
    { "send stored", letter_stored },
    { "send large", letter_large },
    { "recv any", letter_any },
    { "once", once },
    { "first", first },
    { "turn", turn },
    { "store", store },
    { "store wait", store_wait },
    { "split", split },
    { "agree", agree },
    { "queue small", queue_small },
    { "queue in pieces", queue_pieces },
    { "queue lent", queue_lent },
    { "work", work },
};
const int hostile_ops = sizeof ops / sizeof ops[0];

const char *hostile_op_name(int op) { return op >= 0 && op < hostile_ops ? ops[op].name : "none"; }

int hostile_op(tutti_comm *world, const struct hostile_room *room, int op, uint64_t n)
{
    char *const *send = n & 4 ? room->arena : room->own,
                *const *recv = n & 8 ? room->arena : room->own;
    part_said[0] = 0;
    return ops[op].run(world, (struct place){ send[0], recv[1], recv[2] }, n);
}

const char *hostile_said(tutti_comm *world, int op)
{
    bool queues = ops[op].run == queue_small || ops[op].run == queue_pieces
        || ops[op].run == queue_lent;
    return part_said[0] ? part_said : tutti_explain(queues ? tutti_queue_comm(steps) : world);
}
