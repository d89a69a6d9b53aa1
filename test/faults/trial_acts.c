/* The operations that ranks are killed in. Where the others have a part of their own it stands
 * beside the victim's. */
#include "trial.h"

#include "group/comm.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 100000, MAPPED = 1 << 16 };

static int nothing(struct role *s)
{
    (void)s;
    return 0;
}

static int barrier(struct role *s) { return tutti_barrier(s->world, NULL); }

/* The next in order after the victim: whoever has the other part of what only two take part in. */
static int other(const struct role *s) { return (s->victim + 1) % s->size; }

/* ---- collectives ---- */

static int every_prepare(struct role *s)
{
    s->every = (struct every){
        .kind = s->act->kind, .count = s->act->count, .nth = 2, .oper = TUTTI_SUM, .type = TUTTI_I32
    };
    return every_open(&s->room, s->act->count, 0, s->world);
}

static int every_run(struct role *s) { return every_call(&s->every, &s->room, s->world, NULL); }

static int every_check(struct role *s, int gave)
{
    return gave >= 0 && every_wrong(&s->every, &s->room, gave, s->world)
        ? role_wrong(s, "its result is wrong")
        : 0;
}

/* Once before, so that what is made at the first call is there. */
static int every_warm(struct role *s)
{
    int r = every_prepare(s);
    return r == 0 && (r = every_run(s)) > 0 ? 0 : r;
}

/* Left under way, to the progress thread, which goes its own way while the caller is led; then
 * another, called behind it. */
static int works(struct role *s)
{
    tutti_work *work;
    int r = every_call(&s->every, &s->room, s->world, &(tutti_call){ .work = &work });
    return r < 0 ? r : tutti_wait(work, 0);
}

static int works_behind(struct role *s)
{
    tutti_work *work;
    int r = every_call(&s->every, &s->room, s->world, &(tutti_call){ .work = &work });
    if (r < 0)
        return r;
    int behind = tutti_barrier(s->world, NULL);
    r = tutti_wait(work, 0);
    return r < 0 ? r : behind == -ECANCELED ? -EIO : behind;
}

/* For the other thread, led alone: two of them, so that the second one's arrival is its affair.
 * Something was under way before: it is there. */
static int works_warm(struct role *s)
{
    int r = every_prepare(s);
    return r ? r : works(s);
}

static int works_two(struct role *s)
{
    tutti_work *work, *next;
    int r = every_call(&s->every, &s->room, s->world, &(tutti_call){ .work = &work });
    if (r < 0)
        return r;
    int behind = tutti_barrier(s->world, &(tutti_call){ .work = &next });
    if (s->rank == s->victim)
        return 0;
    r = tutti_wait(work, 0);
    behind = behind < 0 ? behind : tutti_wait(next, 0);
    return r < 0 ? r : behind;
}

/* ---- how the verdict is reached ---- */

static uint64_t ticked_ns;

/* The clock of a rank that is led in single steps: by its own, it is stopped most of the time. */
static uint64_t now_ticks(void *arg)
{
    (void)arg;
    return ticked_ns += 300000;
}

static int late(struct role *s)
{
    const struct wait_ways *usual = s->world->watch.ways;
    struct wait_ways ticks = *usual;
    ticks.now = now_ticks;
    ticked_ns = usual->now(usual->arg);
    s->world->watch.ways = &ticks;
    int r = tutti_barrier(s->world, &(tutti_call){ .timeout_ms = 1 });
    s->world->watch.ways = usual;
    return r;
}

static int another(struct role *s)
{
    int x = 1;
    return tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, s->world, NULL);
}

static int aborts(struct role *s) { return tutti_comm_abort(s->world, "on purpose"); }
static int leaves(struct role *s) { return tutti_finalize(s->world); }

/* ---- comms ---- */

static int splits(struct role *s) { return tutti_comm_split(s->world, 1, -s->rank, &s->comm); }

static int dead_in_comm(struct role *s, int gave)
{
    int r;
    if (gave < 0)
        return s->comm ? role_wrong(s, "a comm beside an error") : 0;
    if (!s->comm)
        return 0;
    if ((r = tutti_barrier(s->comm, NULL)) != -EOWNERDEAD)
        return role_wrong(s, "barrier of the new comm: %d", r);
    return (r = tutti_comm_free(s->comm)) ? role_wrong(s, "free of the new comm: %d", r) : 0;
}

static int creates(struct role *s)
{
    int ranks[2] = { s->victim, other(s) };
    return s->rank == s->victim || s->rank == other(s)
        ? tutti_comm_create(s->world, ranks, 2, &s->comm)
        : 0;
}

/* The victim makes a comm of its own where another one of its own was, while the next rank, in a
   comm without it, has made one behind that place and waits for the third, which comes when the
   victim is dead: it is there, and so it is found. */
static tutti_comm *pair;

static int third(const struct role *s) { return (s->victim + 2) % s->size; }

static int anew_prepare(struct role *s)
{
    int both[2] = { other(s), third(s) };
    int r = s->rank == s->victim ? tutti_comm_create(s->world, &s->rank, 1, &s->comm) : 0;
    if (r == 0 && (r = tutti_barrier(s->world, NULL)) == 0 && s->rank != s->victim)
        r = tutti_comm_create(s->world, both, 2, &pair);
    return r ? r : tutti_barrier(s->world, NULL);
}

static int creates_anew(struct role *s)
{
    int r = tutti_comm_free(s->comm);
    s->comm = NULL;
    return r ? r : tutti_comm_create(s->world, &s->rank, 1, &s->comm);
}

static int anew_peer(struct role *s)
{
    const int both[2] = { 0, 1 };
    while (s->rank == third(s)) {
        char state = step_state(s->page->rank[s->victim].pid);
        if (!state || state == 'Z' || state == 'X')
            break;
        nanosleep(&(struct timespec){ 0, 200000 }, NULL);            /* how often to ask */
    }
    return tutti_comm_create(pair, both, 2, &s->comm);
}

static int anew_check(struct role *s, int gave)
{
    int r = gave == 0 ? tutti_barrier(s->comm, NULL) : gave;
    return r ? role_wrong(s, "barrier of a comm without the victim: %d", r) : 0;
}

static int frees_comm(struct role *s) { return tutti_comm_free(s->comm); }
static int barrier_of_comm(struct role *s)
{
    int r = tutti_barrier(s->comm, NULL);
    if (r != -EOWNERDEAD)
        return r < 0 ? r : -EIO;
    return 0;
}
static int freed_check(struct role *s, int gave)
{
    int r = gave == 0 ? tutti_comm_free(s->comm) : 0;
    return r ? role_wrong(s, "free of the comm: %d", r) : 0;
}

static int agrees(struct role *s)
{
    s->value = s->rank == s->victim ? 6 : 7;
    int r = tutti_comm_agree(s->world, &s->value);
    s->page->rank[s->rank].number = (uint64_t)s->value;
    return r;
}

static int agree_check(struct role *s, int gave)
{
    return gave == 0 && s->value != 6 && s->value != 7 ? role_wrong(s, "agreed on %d", s->value)
                                                       : 0;
}

static int shrinks(struct role *s)
{
    int r = tutti_comm_shrink(s->world, &s->comm);
    s->page->rank[s->rank].number = r == 0 ? (uint64_t)tutti_size(s->comm) : 0;
    return r;
}

static int shrink_check(struct role *s, int gave)
{
    if (gave < 0)
        return 0;
    int r = tutti_barrier(s->comm, NULL), with = tutti_size(s->comm) == s->size - 1;
    if (r != (with ? -EOWNERDEAD : 0))
        return role_wrong(s, "barrier of a comm of %d: %d", tutti_size(s->comm), r);
    return (r = tutti_comm_free(s->comm)) ? role_wrong(s, "free of the new comm: %d", r) : 0;
}

/* ---- order ---- */

static int runs(void *arg)
{
    fetch_add32(&((struct role *)arg)->page->runs, 1);
    return 0;
}

static int once(struct role *s) { return tutti_once("key", runs, s, s->world, NULL); }

static int once_check(struct role *s, int gave)
{
    uint32_t n = load_acquire32(&s->page->runs);
    return gave == 0 && (n < 1 || n > (s->act->flags & ACT_TWO ? 3 : 2))
        ? role_wrong(s, "it ran %u times", n)
        : 0;
}

static int first(struct role *s)
{
    int r = tutti_first_begin("key", s->world, NULL);
    if (r != 1)
        return r;
    runs(s);
    return tutti_first_end("key", 0, s->world);
}

/* The next rank goes first, and ends that only when the others are let in: the victim waits for it,
 * and is woken by it. */
static int first_waits_prepare(struct role *s)
{
    int r = s->rank == other(s) ? tutti_first_begin("key", s->world, NULL) : 1;
    return r != 1 ? -EIO : tutti_barrier(s->world, NULL);
}

static int first_waits_peer(struct role *s)
{
    if (s->rank != other(s))
        return first(s);
    runs(s);
    return tutti_first_end("key", 0, s->world);
}

static int turn(struct role *s)
{
    int r = tutti_turn_begin(s->world, NULL);
    return r < 0 ? r : tutti_turn_end(s->world);
}

/* ---- point to point: the victim and the next rank ---- */

/* No channel yet: it is made on the way. */
static int unsent_prepare(struct role *s)
{
    s->memory = tutti_alloc(LARGE * sizeof(int), s->world);
    for (int i = 0; s->memory && i < LARGE; i++)
        ((int *)(void *)s->memory)[i] = i * 3 + s->rank;
    return s->memory ? 0 : -ENOMEM;
}

static int letter_prepare(struct role *s)
{
    int x = 7, to = s->rank == s->victim ? other(s) : s->victim, r = 0;
    if (s->rank != s->victim && s->rank != other(s))
        return 0;
    /* Both ways once, so that the channels are there. */
    if ((r = tutti_send(&x, 1, TUTTI_I32, to, 1, s->world, NULL)) == 0)
        r = tutti_recv(&x, 1, TUTTI_I32, to, 1, NULL, s->world, NULL);
    return r ? r : unsent_prepare(s);
}

static int sends_few(struct role *s)
{
    return tutti_send(s->memory, 10, TUTTI_I32, other(s), 2, s->world, NULL);
}

static int sends_some(struct role *s)
{
    return tutti_send(s->memory, 2000, TUTTI_I32, other(s), 2, s->world, NULL);
}

static int sends_many(struct role *s)
{
    return tutti_send(s->memory, LARGE, TUTTI_I32, other(s), 2, s->world, NULL);
}

static int takes(struct role *s)
{
    if (s->rank != other(s))
        return 0;
    tutti_message got;
    int r = tutti_recv(s->memory, LARGE, TUTTI_I32, s->victim, 2, &got, s->world, NULL);
    s->value = r == 0 ? (int)got.count : 0;
    return r;
}

static int taken_check(struct role *s, int gave)
{
    for (int i = 0; gave == 0 && i < s->value; i++)
        if (((int *)(void *)s->memory)[i] != i * 3 + s->victim)
            return role_wrong(s, "element %d of %d of the message is wrong", i, s->value);
    return 0;
}

static int gives_few(struct role *s)
{
    return s->rank == other(s) ? tutti_send(s->memory, 10, TUTTI_I32, s->victim, 2,
                                            s->world, NULL) : 0;
}

static int gives_many(struct role *s)
{
    return s->rank == other(s) ? tutti_send(s->memory, LARGE, TUTTI_I32, s->victim, 2,
                                            s->world, NULL) : 0;
}

static int receives(struct role *s)
{
    static int room[LARGE];
    return tutti_recv(room, LARGE, TUTTI_I32, TUTTI_ANY, TUTTI_ANY, NULL, s->world, NULL);
}

static int probes(struct role *s) { return tutti_probe(other(s), 2, NULL, s->world, NULL); }

/* ---- the store ---- */

static const char old_value[] = "the value that was there before",
                  new_value[] = "another value, which is longer than that which was there before";

static int store_prepare(struct role *s)
{
    int r = 0;
    int64_t now;
    if (s->rank == other(s) && (r = tutti_set("key", old_value, sizeof old_value, s->world)) == 0)
        r = tutti_add("number", 5, &now, s->world);
    return r ? r : tutti_barrier(s->world, NULL);
}

static int sets(struct role *s) { return tutti_set("key", new_value, sizeof new_value, s->world); }

static int sets_fresh(struct role *s)
{
    return tutti_set("fresh", new_value, sizeof new_value, s->world);
}

static int swaps(struct role *s)
{
    return tutti_compare_set("key", old_value, sizeof old_value, new_value, sizeof new_value,
                             s->world);
}

static int deletes(struct role *s) { return tutti_delete("key", s->world); }
static int adds(struct role *s) { return tutti_add("number", 2, NULL, s->world); }
static int adds_fresh(struct role *s) { return tutti_add("fresh", 2, NULL, s->world); }
static int gets(struct role *s)
{
    char value[100];
    size_t n = sizeof value;
    return tutti_get("late", value, &n, s->world, NULL);
}

/* The next rank waits for what the victim brings. */
static int sets_late(struct role *s)
{
    return tutti_set("late", new_value, sizeof new_value, s->world);
}

static int gets_late(struct role *s)
{
    char value[100];
    size_t n = sizeof value;
    int r = s->rank == other(s) ? tutti_get("late", value, &n, s->world, NULL) : 0;
    if (r == 0 && s->rank == other(s)
        && (n != sizeof new_value || memcmp(value, new_value, n) != 0))
        return -EIO;
    return r;
}

/* Beside it: entries of their own, made and unmade, among them the one that the victim may
 * wait for. */
static int store_peer(struct role *s)
{
    char key[32];
    int r, x;
    size_t n = sizeof x;
    snprintf(key, sizeof key, "peer.%d", s->rank);
    if ((r = tutti_set(key, &s->rank, sizeof s->rank, s->world))
        || (r = tutti_get(key, &x, &n, s->world, NULL)))
        return r;
    if (s->rank == other(s) && (r = tutti_set("late", &x, sizeof x, s->world)))
        return r;
    return x == s->rank ? tutti_delete(key, s->world) : -EIO;
}

/* The comm is broken by now; the table is looked at through one of those that are left. */
static int store_check(struct role *s, int gave)
{
    char value[100];
    size_t n = sizeof value;
    int64_t number = 0;
    tutti_comm *comm;
    (void)gave;
    if (tutti_comm_shrink(s->world, &comm))
        return role_wrong(s, "shrink for the store");
    int r = tutti_get("key", value, &n, comm, &(tutti_call){ .timeout_ms = 1 });
    bool old = r == 0 && n == sizeof old_value && !memcmp(value, old_value, n);
    bool new = r == 0 && n == sizeof new_value && !memcmp(value, new_value, n);
    bool changed = s->act->victim == sets || s->act->victim == swaps,
         deleted = s->act->victim == deletes && (r == -ETIMEDOUT || r == -EOWNERDEAD);
    if (!old && !(changed && new) && !deleted)
        return role_wrong(s, "key: %d, %zu bytes", r, n);
    n = sizeof value;
    r = tutti_get("fresh", value, &n, comm, &(tutti_call){ .timeout_ms = 1 });
    bool missing = r == -ETIMEDOUT || r == -EOWNERDEAD,
         whole = r == 0 && n == sizeof new_value && !memcmp(value, new_value, n);
    bool number_two = r == 0 && n == 8 && value[0] == 2;
    if (!missing && !(s->act->victim == sets_fresh && whole)
        && !(s->act->victim == adds_fresh && number_two))
        return role_wrong(s, "fresh: %d, %zu bytes", r, n);
    if ((r = tutti_add("number", 0, &number, comm))
        || (number != 5 && !(s->act->victim == adds && number == 7)))
        return role_wrong(s, "number: %d, %d", r, (int)number);
    return tutti_comm_free(comm);
}

/* ---- the lock of the directories: the next rank holds it, the victim sleeps for it, then another
   rank does. The holder lets go, takes it again at once, and keeps it until the victim sleeps again
   or is dead: so it was woken, and died when one held it who knows of no sleepers ---- */

enum { LOCK_NS = 2000000000 };

static struct arena *lock_of(struct role *s) { return &s->world->world->arena; }

static int locks_prepare(struct role *s)
{
    int r = tutti_barrier(s->world, NULL);           /* nobody is joining any more */
    if (r == 0 && s->rank == other(s))
        r = arena_lock(lock_of(s), LOCK_NS);
    return r ? r : tutti_barrier(s->world, NULL);
}

static int locks(struct role *s)
{
    int r = arena_lock(lock_of(s), PATIENCE_NS * 2);
    if (r == 0)
        arena_unlock(lock_of(s));
    return r;
}

static void await_asleep_or_gone(int pid)
{
    for (int found = 0; found < 3; sched_yield()) {
        char state = step_state(pid);
        if (!state || state == 'Z' || state == 'X')
            return;
        found = state == 'S' ? found + 1 : 0;
    }
}

static int locks_peer(struct role *s)
{
    if (s->rank != other(s)) {
        role_raise(&s->page->here, 1);
        return locks(s);
    }
    const struct trial_rank *third = NULL;
    for (int r = 0; r < s->size; r++)
        third = r != s->rank && r != s->victim ? &s->page->rank[r] : third;
    role_await(&s->page->here, 1);
    await_asleep_or_gone(third->pid);
    arena_unlock(lock_of(s));
    int r = arena_lock(lock_of(s), PATIENCE_NS * 2);
    await_asleep_or_gone(s->page->rank[s->victim].pid);
    if (r == 0)
        arena_unlock(lock_of(s));
    return r;
}

/* ---- memory: nobody else takes part ---- */

static int allocates(struct role *s) { return tutti_alloc(3000, s->world) ? 0 : -ENOMEM; }

static int alloc_prepare(struct role *s)
{
    s->memory = tutti_alloc(300000, s->world);
    return s->memory ? 0 : -ENOMEM;
}
static int frees(struct role *s) { return tutti_free(s->memory, s->world); }

static int map_prepare(struct role *s)
{
    s->memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->memory == MAP_FAILED)
        return -ENOMEM;
    memset(s->memory, 1 + s->rank, MAPPED);
    return 0;
}
static int registers(struct role *s) { return tutti_register(s->memory, MAPPED, s->world); }

static int registered_prepare(struct role *s)
{
    int r = map_prepare(s);
    return r ? r : registers(s);
}
static int unregisters(struct role *s) { return tutti_unregister(s->memory, s->world); }
static int registered_check(struct role *s, int gave)
{
    (void)gave;
    for (int i = 0; i < MAPPED; i++)
        if (s->memory[i] != 1 + s->rank)
            return role_wrong(s, "the registered memory is another");
    return 0;
}

/* ---- operations of one's own ---- */

static int makes_op(struct role *s)
{
    tutti_op op;
    return tutti_op_create(every_sum, 1, &op, s->world);
}

#define COLLECTIVE_KIND(text, how, gate_, kind_, count_, more) \
    { .name = text, .flags = ACT_ALIKE | ACT_BREAKS | (more), .size = 3, .algorithm = how, \
      .gate = gate_, .kind = kind_, .count = count_, \
      .prepare = every_warm, .victim = every_run, .check = every_check, \
          .allowed = { -EOWNERDEAD } }
#define LOCAL(text, prepare_, victim_, check_)                                          \
    { .name = text, .size = 3, .prepare = prepare_, .victim = victim_, .peer = nothing, \
      .check = check_ }
#define STORE(text, victim_) \
    { .name = text, .flags = ACT_BREAKS, .size = 3, .prepare = store_prepare, .victim = victim_, \
      .peer = store_peer, .check = store_check, \
      .allowed = { -EOWNERDEAD } }
#define LETTER(text, victim_, peer_, check_) \
    { .name = text, .flags = ACT_BREAKS | ACT_SPANS, .size = 3, .prepare = letter_prepare, \
      .victim = victim_, .peer = peer_, .check = check_, \
      .allowed = { -EOWNERDEAD } }

#define WORK(text, how, count_, victim_) \
    { .name = text, .flags = ACT_ALIKE | ACT_BREAKS | ACT_THREADS, .size = 3, .algorithm = how, \
      .kind = KIND_ALL_REDUCE, .count = count_, \
      .prepare = every_prepare, .victim = victim_, .check = every_check, \
          .allowed = { -EOWNERDEAD } }

#define PROGRESS(text, how, count_) \
    { .name = text, .flags = ACT_ALIKE | ACT_BREAKS | ACT_PROGRESS, .size = 3, .algorithm = how, \
      .kind = KIND_ALL_REDUCE, .count = count_, \
      .prepare = works_warm, .victim = works_two, .check = every_check, \
          .allowed = { -EOWNERDEAD } }
#define TWO(text, how, kind_, count_) \
    { .name = text, .flags = ACT_ALIKE | ACT_BREAKS | ACT_TWO, .size = 4, .algorithm = how, \
      .kind = kind_, .count = count_, \
      .prepare = every_warm, .victim = every_run, .check = every_check, \
          .allowed = { -EOWNERDEAD } }
#define PIPED(text, kind_) COLLECTIVE_KIND(text, "pipelined", "flags", kind_, 60000, 0)
#define PULLED(text, kind_) COLLECTIVE_KIND(text, "direct", "flags", kind_, 60000, 0)

const struct act acts[] = {
    COLLECTIVE_KIND("barrier", "inline", "flags", KIND_BARRIER, 0, ACT_INSTRUCTIONS),
    COLLECTIVE_KIND("barrier_central", "inline", "central", KIND_BARRIER, 0, ACT_INSTRUCTIONS),
    COLLECTIVE_KIND("all_reduce_line", "inline", "flags", KIND_ALL_REDUCE, 3, ACT_INSTRUCTIONS),
    COLLECTIVE_KIND("all_reduce_eager", "eager", "flags", KIND_ALL_REDUCE, 20, ACT_INSTRUCTIONS),
    { .name = "verdict", .flags = ACT_INSTRUCTIONS | ACT_ALIKE | ACT_BREAKS | ACT_DEAD, .size = 4,
      .victim = barrier,
      .allowed = { -EOWNERDEAD } },
    { .name = "verdict_late", .flags = ACT_INSTRUCTIONS | ACT_ALIKE | ACT_BREAKS | ACT_HOLD,
      .size = 3, .victim = late, .peer = barrier,
      .allowed = { -ETIMEDOUT, -EOWNERDEAD } },
    { .name = "verdict_mismatch", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .victim = another,
      .peer = barrier,
      .allowed = { -EPROTO, -EOWNERDEAD } },
    { .name = "once", .flags = ACT_INSTRUCTIONS, .size = 3, .victim = once, .check = once_check },
    { .name = "abort", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .victim = aborts,
      .peer = barrier, .allowed = { -ECANCELED, -EOWNERDEAD } },
    { .name = "finalize", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .victim = leaves,
      .peer = barrier, .allowed = { -EOWNERDEAD } },
    { .name = "init", .flags = ACT_JOINS, .size = 3, .victim = barrier,
      .allowed = { -EOWNERDEAD, -ETIMEDOUT } },
    { .name = "split", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .victim = splits,
      .check = dead_in_comm, .allowed = { -EOWNERDEAD } },
    { .name = "create", .size = 3, .victim = creates, .check = dead_in_comm,
      .allowed = { -EOWNERDEAD } },
    { .name = "create_anew", .size = 3, .prepare = anew_prepare, .victim = creates_anew,
      .peer = anew_peer, .check = anew_check },
    { .name = "comm_free", .size = 3, .prepare = splits, .victim = frees_comm,
      .peer = barrier_of_comm, .check = freed_check },
    { .name = "agree", .flags = ACT_ALIKE | ACT_NUMBER, .size = 3, .victim = agrees,
      .check = agree_check },
    { .name = "agree_broken", .flags = ACT_ALIKE | ACT_NUMBER | ACT_BROKEN, .size = 4,
      .victim = agrees, .check = agree_check },
    { .name = "shrink", .flags = ACT_ALIKE | ACT_NUMBER | ACT_BROKEN, .size = 4, .victim = shrinks,
      .check = shrink_check },
    { .name = "first", .size = 3, .victim = first, .check = once_check },
    { .name = "first_waits", .flags = ACT_INSTRUCTIONS, .size = 3, .prepare = first_waits_prepare,
      .victim = first, .peer = first_waits_peer,
      .check = once_check },
    { .name = "turn", .flags = ACT_BREAKS, .size = 3, .victim = turn, .allowed = { -EOWNERDEAD } },
    { .name = "op_create", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .victim = makes_op,
      .allowed = { -EOWNERDEAD } },
    LETTER("send", sends_few, takes, taken_check),
    { .name = "send_first", .flags = ACT_BREAKS | ACT_SPANS, .size = 3, .prepare = unsent_prepare,
      .victim = sends_some, .peer = takes,
      .check = taken_check, .allowed = { -EOWNERDEAD } },
    LETTER("send_stored", sends_some, takes, taken_check),
    LETTER("send_offered", sends_many, takes, taken_check),
    LETTER("recv", receives, gives_few, NULL),
    LETTER("recv_offered", receives, gives_many, NULL),
    LETTER("probe", probes, gives_few, NULL),
    STORE("set", sets), STORE("set_fresh", sets_fresh),
    STORE("compare_set", swaps), STORE("delete", deletes), STORE("add", adds),
    STORE("add_fresh", adds_fresh), STORE("get", gets),
    { .name = "set_waited", .flags = ACT_BREAKS, .size = 3, .prepare = store_prepare,
      .victim = sets_late, .peer = gets_late, .check = store_check,
      .allowed = { -EOWNERDEAD } },
    { .name = "lock_waits", .flags = ACT_INSTRUCTIONS, .size = 3, .prepare = locks_prepare,
      .victim = locks, .peer = locks_peer },
    LOCAL("alloc", NULL, allocates, NULL), LOCAL("free", alloc_prepare, frees, NULL),
    LOCAL("register", map_prepare, registers, registered_check),
    LOCAL("unregister", registered_prepare, unregisters, registered_check),
    WORK("work", "eager", 20, works), WORK("work_behind", "inline", 3, works_behind),
    PROGRESS("progress_line", "inline", 3), PROGRESS("progress_eager", "eager", 20),
    PROGRESS("progress_pipeline", "pipelined", 3000), TWO("two_barrier", "inline", KIND_BARRIER, 0),
    TWO("two_line", "inline", KIND_ALL_REDUCE, 3), TWO("two_eager", "eager", KIND_ALL_REDUCE, 20),
    TWO("two_pipeline", "pipelined", KIND_ALL_REDUCE, 60000),
    TWO("two_scatter_v", "pipelined", KIND_REDUCE_SCATTER_V, 60000),
    { .name = "two_split", .flags = ACT_ALIKE | ACT_BREAKS | ACT_TWO, .size = 4, .victim = splits,
      .check = dead_in_comm, .allowed = { -EOWNERDEAD } },
    { .name = "two_once", .flags = ACT_TWO, .size = 4, .victim = once, .check = once_check },
    { .name = "two_agree", .flags = ACT_ALIKE | ACT_NUMBER | ACT_TWO, .size = 4, .victim = agrees,
      .check = agree_check },
    PIPED("broadcast_pipeline", KIND_BROADCAST), PIPED("reduce_pipeline", KIND_REDUCE),
    COLLECTIVE_KIND("reduce_rooted", "rooted", "flags", KIND_REDUCE, 60000, 0),
    PIPED("all_reduce_pipeline", KIND_ALL_REDUCE),
    PIPED("all_reduce_many_pipeline", KIND_ALL_REDUCE_MANY),
    PIPED("reduce_scatter_pipeline", KIND_REDUCE_SCATTER),
    PIPED("all_gather_pipeline", KIND_ALL_GATHER), PIPED("gather_pipeline", KIND_GATHER),
    PIPED("scatter_pipeline", KIND_SCATTER), PIPED("all_to_all_pipeline", KIND_ALL_TO_ALL),
    PIPED("scan_pipeline", KIND_SCAN), PIPED("exscan_pipeline", KIND_EXSCAN),
    PIPED("reduce_scatter_v", KIND_REDUCE_SCATTER_V), PIPED("all_gather_v", KIND_ALL_GATHER_V),
    PIPED("gather_v", KIND_GATHER_V), PIPED("scatter_v", KIND_SCATTER_V),
    PIPED("all_to_all_v", KIND_ALL_TO_ALL_V), PULLED("broadcast_pull", KIND_BROADCAST),
    PULLED("reduce_pull", KIND_REDUCE), PULLED("all_reduce_pull", KIND_ALL_REDUCE),
    PULLED("reduce_scatter_pull", KIND_REDUCE_SCATTER), PULLED("all_to_all_pull", KIND_ALL_TO_ALL),
    PULLED("all_to_all_v_pull", KIND_ALL_TO_ALL_V),
    { .name = "direct_first", .flags = ACT_ALIKE | ACT_BREAKS, .size = 3, .algorithm = "direct",
      .kind = KIND_ALL_REDUCE, .count = 60000,
      .prepare = every_prepare, .victim = every_run, .check = every_check,
      .allowed = { -EOWNERDEAD } },
    COLLECTIVE_KIND("all_gather_eager", "eager", "flags", KIND_ALL_GATHER, 1000, 0),
    COLLECTIVE_KIND("all_to_all_eager", "eager", "flags", KIND_ALL_TO_ALL, 1000, 0),
    COLLECTIVE_KIND("same", "eager", "flags", KIND_SAME, 100, 0),
};
const int acts_count = sizeof acts / sizeof acts[0];
