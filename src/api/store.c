/* set, get, add, compare_set, delete: the checks, the texts for errors, and the wait of get. The
 * table belongs to the job (arena/store); the comm gives the deadline, the report and whether it is
 * whole. No function here is a collective or touches the comm's queue.
 * Cost beside the table's own: the entry of every call, and a record in the journal if no work is
 * under way. */
#define TUTTI_NO_SITES
#include "api/device.h"
#include "engine/guard.h"
#include "arena/store.h"
#include "base/clock.h"
#include "base/error.h"
#include "group/timed_wait.h"
#include "os/caller.h"
#include "watch/journal.h"
#include "watch/rollcall.h"

#include <stdio.h>
#include <string.h>

#define LOCK_PATIENCE_NS UINT64_C(30000000000)

/* said: the report is written. */
struct store_call {
    struct tutti_comm *comm;
    enum kind kind;
    uint32_t site;
    struct store_key key;
    bool journal, said;
};

static int call_too_long(const struct store_call *c, const char *what, size_t bytes, size_t most)
{
    guard_refuse(c->comm, c->kind, c->site, "the %s has %zu bytes or more; the most is %zu", what,
                 bytes, most);
    return -EMSGSIZE;
}

/* Enters the comm and checks the key; on an error it has left the comm again. */
static int call_open(struct store_call *c, struct tutti_comm *comm, enum kind kind,
                     const char *site, const char *key)
{
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    *c = (struct store_call){ .comm = comm, .kind = kind, .site = guard_site(comm, site) };
    size_t bytes = key ? strnlen(key, STORE_KEY_MOST + 1) : 0;
    if (bytes == 0)
        return guard_leave(comm,
                           guard_refuse(comm, kind, c->site, "the key is %s",
                                        key ? "empty" : "NULL"));
    if (bytes > STORE_KEY_MOST)
        return guard_leave(comm, call_too_long(c, "key", bytes, STORE_KEY_MOST));
    c->key = store_key(key, bytes);
    return 0;
}

static int call_value(const struct store_call *c, const char *what, const void *value, size_t bytes)
{
    if (bytes > STORE_VALUE_MOST)
        return call_too_long(c, what, bytes, STORE_VALUE_MOST);
    if (!value && bytes)
        return guard_refuse(c->comm, c->kind, c->site, "the %s is NULL, and its length is %zu",
                            what, bytes);
    return device_refuse(c->comm, c->kind, c->site, what, value, bytes);
}

/* Called when all arguments are good. 0, or the reason not to begin. With work under way the
 * journal belongs to the thread that carries that on. */
static int call_begin(struct store_call *c)
{
    struct timed_wait p = { .comm = c->comm };
    int r = guard_operation(c->comm, c->kind, c->site);
    if (r == 0)
        r = timed_wait_check(&p, PATIENCE_NOBODY, "to use the store");
    if (r < 0)
        return r;
    c->journal = !(load_acquire32(&c->comm->watch.attention) & ATTENTION_WORK);
    if (c->journal)
        journal_begin(&c->comm->watch, 0, fingerprint_make(c->kind, 0, 0, 0, 0), 0, c->site,
                      clock_tick());
    return 0;
}

static void call_name(const struct store_call *c, struct text *t)
{
    text_clear(t);
    text_add(t, "%s of key \"%.80s\" at %s: ", kind_name(c->kind), c->key.text,
             arena_site_text(&c->comm->world->arena, c->site));
}

static void call_explain(const struct store_call *c, int error)
{
    const struct arena *arena = &c->comm->world->arena;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    uint64_t keys, used;
    call_name(c, &t);
    switch (error) {
    case -ENOSPC:
        store_figures(arena, &keys, &used);
        text_add(&t, "the store is full: %llu keys, ", (unsigned long long)keys);
        text_add_bytes(&t, used);
        text_add(&t, " of ");
        text_add_bytes(&t, arena->header->store_bytes);
        text_add(&t, " in use; delete what is over, or raise TUTTI_STORE_BYTES");
        break;
    case -ENOMEM:
        text_add(&t, "the system has no pages left for the store (RAM or cgroup limit)");
        break;
    case -ETIMEDOUT:
        text_add(&t,
                 "a rank that stands still (stopped, or in a debugger) holds the store's lock; let "
                 "it go on, or end it");
        break;
    case -EIO:
        text_add(&t, "a rank has written over the store; it cannot be used any more");
        break;
    case -EINVAL:
        text_add(&t, "its value was not made by add");
        break;
    case -ENOENT:
        text_add(&t, "there is no such key");
        break;
    default:
        text_add(&t, "%s", error_text(error));
    }
    comm_show(c->comm, &t);
}

static int call_end(const struct store_call *c, int result)
{
    if (result < 0 && !c->said)
        call_explain(c, result);
    if (result == -ENOSPC)
        result = -ENOMEM;
    if (c->journal)
        journal_end(&c->comm->watch, result < 0 ? result : 0, clock_tick());
    return guard_leave(c->comm, result);
}

/* ---- get ---- */

static void get_table(struct store_call *c, struct text *t)
{
    text_add(t, "\n");
    rollcall_table(t, &c->comm->watch, NULL);
    comm_show(c->comm, t);
    c->said = true;
}

static int get_late(struct store_call *c, const struct timed_wait *p)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    call_name(c, &t);
    text_add(&t, "the deadline of ");
    text_add_duration(&t, (uint64_t)p->timeout_ns);
    text_add(&t, " passed; no rank has set it");
    get_table(c, &t);
    return -ETIMEDOUT;
}

static int get_alone(struct store_call *c)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    call_name(c, &t);
    bool alone = c->comm->world->size == 1;
    text_add(&t, "nobody is left to set it: %s",
             alone ? "this rank is alone in the job"
                   : "all other ranks of the job are dead or gone");
    get_table(c, &t);
    return -EOWNERDEAD;
}

static int get_small(struct store_call *c, size_t limit, size_t bytes)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    call_name(c, &t);
    text_add(&t, "its value has %zu bytes, and there is room for %zu", bytes, limit);
    comm_show(c->comm, &t);
    c->said = true;
    return -EMSGSIZE;
}

static uint64_t get_lock_patience(const struct timed_wait *p)
{
    const struct wait_ways *ways = p->comm->watch.ways;
    if (p->timeout_ns < 0)
        return LOCK_PATIENCE_NS;
    uint64_t waited = ways->now(ways->arg) - p->began_ns - p->excused_ns,
             timeout = (uint64_t)p->timeout_ns;
    uint64_t left = waited < timeout ? timeout - waited : 0;
    return left < LOCK_PATIENCE_NS ? left : LOCK_PATIENCE_NS;
}

/* One look: 0, -EMSGSIZE, or the error of store_get. */
static int get_look(struct store_call *c, void *value, size_t *len, uint64_t *version,
                    uint64_t lock_patience_ns)
{
    size_t room = *len, bytes = room;
    int r = store_get(&c->comm->world->arena, &c->key, value, &bytes, version, lock_patience_ns);
    if (r == 0 || r == -EMSGSIZE)
        *len = bytes;
    return r == -EMSGSIZE ? get_small(c, room, bytes) : r;
}

/* Sleeps on the version of the key's group, and on the mark of one other rank, any of them: while
 * one lives, it may set the key. */
static int get_await(struct store_call *c, void *value, size_t *len, struct timed_wait *p)
{
    struct watch *w = &c->comm->watch;
    struct store_group *group = store_group(&c->comm->world->arena, &c->key);
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    uint32_t from = 0;
    uint64_t version;
    char what[128];
    snprintf(what, sizeof what, "for key \"%.80s\"", c->key.text);
    for (bool spun = false;; spun = true) {
        /* E5: before the look at what it may have set */
        struct seat *other = timed_wait_other(p, &from);
        int r = get_look(c, value, len, &version, get_lock_patience(p));
        if (r != -ENOENT)
            return r;
        if (!other) {                        /* a rank that aborted and left has given the reason */
            r = timed_wait_check(p, PATIENCE_NOBODY, what);
            c->said = r < 0;
            return r < 0 ? r : get_alone(c);
        }
        if (!spun && wait_spin(&group->version, version + 1, ends, &w->budget, w->ways))
            continue;
        r = timed_wait_sleep_any(p, &group->version, version, &group->sleepers, other, what);
        c->said = r < 0;
        if (r < 0)
            return r == -ETIMEDOUT && !p->broken ? get_late(c, p) : r;
    }
}

static int get_wait(struct store_call *c, void *value, size_t *len, int64_t timeout_ns)
{
    struct timed_wait p = timed_wait_begin(c->comm, timeout_ns);
    p.kind = c->kind;
    p.site = c->site;
    snprintf(c->comm->watch.mine->awaited, AWAITED_TEXT, "%s", c->key.text);
    int r = get_await(c, value, len, &p);
    c->comm->watch.mine->awaited[0] = 0;
    timed_wait_moved(&p);
    return r;
}

/* A key that is there is found by the first look, without a read of the clock. */
static int get_value(struct store_call *c, void *value, size_t *len, int64_t timeout_ns)
{
    uint64_t version,
        patience = timeout_ns < 0 || (uint64_t)timeout_ns > LOCK_PATIENCE_NS ? LOCK_PATIENCE_NS
                                                                             : (uint64_t)timeout_ns;
    int r = get_look(c, value, len, &version, patience);
    return r == -ENOENT ? get_wait(c, value, len, timeout_ns) : r;
}

/* ---- the public functions ---- */

int tutti_set_at(const char *site, const char *key, const void *value, size_t len, tutti_comm *comm)
{
    CALLER_KEPT;
    struct store_call c;
    int r = call_open(&c, comm, KIND_SET, site, key);
    if (r < 0)
        return r;
    r = call_value(&c, "value", value, len);
    if (r == 0)
        r = call_begin(&c);
    if (r < 0)
        return guard_leave(comm, r);
    return call_end(&c, store_set(&comm->world->arena, &c.key, value, len, LOCK_PATIENCE_NS));
}

int tutti_get_at(const char *site, const char *key, void *value, size_t *len, tutti_comm *comm,
                 const tutti_call *call)
{
    CALLER_KEPT;
    struct store_call c;
    guard_clear(call);
    int r = call_open(&c, comm, KIND_GET, site, key);
    if (r < 0)
        return r;
    if (call && call->work)
        r = guard_refuse(comm, KIND_GET, c.site, "call.work: this call cannot be left under way");
    if (r == 0)
        r = guard_call(comm, KIND_GET, c.site, call);
    if (r == 0 && !len)
        r = guard_refuse(comm, KIND_GET, c.site,
                         "len is NULL: it says how much room there is, and then how long the value "
                         "is");
    if (r == 0 && !value && *len)
        r = guard_refuse(comm, KIND_GET, c.site, "the value is NULL, and its room is %zu", *len);
    if (r == 0)
        r = device_refuse(comm, KIND_GET, c.site, "the value", value, *len);
    if (r == 0)
        r = call_begin(&c);
    if (r < 0)
        return guard_leave(comm, r);
    return call_end(&c, get_value(&c, value, len, guard_timeout(comm, call)));
}

int tutti_add_at(const char *site, const char *key, int64_t delta, int64_t *now, tutti_comm *comm)
{
    CALLER_KEPT;
    struct store_call c;
    int64_t sum = 0;
    int r = call_open(&c, comm, KIND_ADD, site, key);
    if (r < 0)
        return r;
    r = call_begin(&c);
    if (r < 0)
        return guard_leave(comm, r);
    r = store_add(&comm->world->arena, &c.key, delta, &sum, LOCK_PATIENCE_NS);
    if (r == 0 && now)
        *now = sum;
    return call_end(&c, r);
}

int tutti_compare_set_at(const char *site, const char *key, const void *expected,
                         size_t expected_len, const void *desired, size_t desired_len,
                         tutti_comm *comm)
{
    CALLER_KEPT;
    struct store_call c;
    int r = call_open(&c, comm, KIND_COMPARE_SET, site, key);
    if (r < 0)
        return r;
    r = call_value(&c, "expected value", expected, expected_len);
    if (r == 0)
        r = call_value(&c, "desired value", desired, desired_len);
    if (r == 0)
        r = call_begin(&c);
    if (r < 0)
        return guard_leave(comm, r);
    struct store_value from = { expected, expected_len }, to = { desired, desired_len };
    return call_end(&c, store_compare_set(&comm->world->arena, &c.key, from, to, LOCK_PATIENCE_NS));
}

int tutti_delete_at(const char *site, const char *key, tutti_comm *comm)
{
    CALLER_KEPT;
    struct store_call c;
    int r = call_open(&c, comm, KIND_DELETE, site, key);
    if (r < 0)
        return r;
    r = call_begin(&c);
    if (r < 0)
        return guard_leave(comm, r);
    return call_end(&c, store_delete(&comm->world->arena, &c.key, LOCK_PATIENCE_NS));
}

int tutti_set(const char *key, const void *value, size_t len, tutti_comm *comm)
{
    return tutti_set_at(NULL, key, value, len, comm);
}

int tutti_get(const char *key, void *value, size_t *len, tutti_comm *comm, const tutti_call *call)
{
    return tutti_get_at(NULL, key, value, len, comm, call);
}

int tutti_add(const char *key, int64_t delta, int64_t *now, tutti_comm *comm)
{
    return tutti_add_at(NULL, key, delta, now, comm);
}

int tutti_compare_set(const char *key, const void *expected, size_t expected_len,
                      const void *desired, size_t desired_len, tutti_comm *comm)
{
    return tutti_compare_set_at(NULL, key, expected, expected_len, desired, desired_len, comm);
}
int tutti_delete(const char *key, tutti_comm *comm) { return tutti_delete_at(NULL, key, comm); }
