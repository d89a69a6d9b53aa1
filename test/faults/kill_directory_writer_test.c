/* ctest: timeout=300 labels=faults,nosan */
/* Whoever writes into what all ranks look things up in (slots of comms, keys, sites) is killed
 * after each of its stores there, in a process of its own: then a reader finds everything that was
 * there before, in its place; what the dead one was to make can be made, once; and nothing is kept
 * for those that are gone. By default a share of the points is tried, another one each run;
 * TUTTI_PROVE=1 tries all.
 *   TUTTI_TEST_SEED=N  the same lots again
 * The store has a test of its own (arena.store_death), messages have rows of
 * faults.kill_step. nosan: it counts stores. */
#include "group/directory.h"
#include "order/keys.h"
#include "support/team.h"
#include "trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARE = 60, LOCK_NS = 2000000000 };

/* A world of this process alone, with comms that stay, in front of one that is freed and
 * behind it. */
static struct scene {
    tutti_comm *world, *front, *freed, *behind, *bare;        /* bare: that has no key yet */
    uint64_t freed_birth;
    uint32_t old_site;
} scene;
static shared32 *go;

static const struct arena *arena(void) { return &scene.world->world->arena; }
static const char old_site[] = "old.c:1", new_site[] = "new.c:2";

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static tutti_comm *comm_with(const char *key)
{
    int me = 0;
    tutti_comm *comm;
    assert_int_equal(tutti_comm_create(scene.world, &me, 1, &comm), 0);
    if (key)
        assert_int_equal(tutti_once(key, nothing, NULL, comm, NULL), 0);
    return comm;
}

static void begin(bool freed)
{
    scene = (struct scene){ 0 };
    assert_int_equal(tutti_init(&scene.world, NULL), 0);
    /* the writer is a fork of this process */
    assert_int_equal(madvise(arena()->base, arena()->bytes, MADV_DOFORK), 0);
    scene.front = comm_with("front");
    scene.freed = comm_with("freed");
    scene.behind = comm_with("behind");
    scene.bare = comm_with(NULL);
    scene.freed_birth = scene.freed->birth;
    scene.old_site = arena_site(arena(), old_site);
    if (freed) {
        assert_int_equal(tutti_comm_free(scene.freed), 0);
        scene.freed = NULL;
    }
}

/* ---- the writers ---- */

static struct slot *slot_of(uint64_t parent, uint64_t nth)
{
    const uint32_t me = 0;
    struct directory_key key = { parent, nth, -1, &me, 1 };
    struct slot *slot = NULL;
    return directory_find_or_make(arena(), &key, &slot) == 0 ? slot : NULL;
}

static int makes_comm(void) { return slot_of(77, 1) ? 0 : 1; }
static int sweeps(void)
{
    if (arena_lock(arena(), LOCK_NS) < 0)
        return 1;
    directory_sweep(arena());
    arena_unlock(arena());
    return 0;
}
static int adds_key(void)
{
    int error;
    return keys_find(scene.bare, KIND_ONCE, "fresh", true, &error) ? 0 : 1;
}
static int adds_site(void) { return arena_site(arena(), new_site) ? 0 : 1; }

/* again: the key is asked for by who looks, too. */
static const struct writer {
    const char *name;
    bool freed;
    int (*write)(void);
    bool again;
} writers[] = {
    { "a comm in a slot that was freed", true, makes_comm, false },
    { "a comm in a slot behind all", false, makes_comm, false },
    { "a sweep", true, sweeps, false },
    { "a key", true, adds_key, true },
    { "a key that nobody asks for again", true, adds_key, false },
    { "a site", true, adds_site, false },
};

/* ---- its death ---- */

static pid_t start(const struct writer *w)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    step_child();
    role_await(go, 1);
    step_mark();
    int r = w->write();
    step_mark();
    _exit(r);
}

/* Killed after so many stores and system calls; how many it came to. At its end it is
 * killed, too. */
static long die_after(const struct writer *w, long events)
{
    struct step step;
    store_release32(go, 0);
    pid_t pid = start(w);
    assert_true(step_seize(&step, pid));
    role_raise(go, 1);
    assert_true(step_to_mark(&step));
    step_bound(&step, 2 * TRIAL_PATIENCE_S);
    assert_true(step_shield(&step, (uint64_t)(uintptr_t)arena()->base, arena()->header->spans_at));
    long n = 0;
    for (enum stepped now = STEP_ON; n < events && now != STEP_MARK; n += now == STEP_ON) {
        now = step_event(&step);
        assert_int_not_equal(now, STEP_GONE);
    }
    step_bound(&step, 0);
    step_kill(&step);
    return n;
}

/* ---- the reader ---- */

static void comm_is_there(tutti_comm *comm, uint64_t nth, const char *name)
{
    int error;
    assert_ptr_equal(slot_of(scene.world->birth, nth), comm->watch.slot);
    assert_true(comm->watch.slot->birth == comm->birth);
    const struct key_call *call = keys_find(comm, KIND_ONCE, name, false, &error);
    assert_non_null(call);
    assert_true(call && load_acquire64(&call->key->rounds) == 1);
    assert_int_equal(tutti_barrier(comm, NULL), 0);
}

static int slots_of(uint64_t parent)
{
    int n = 0;
    for (uint32_t i = 0; i < arena()->header->slots; i++)
        n += load_acquire32(&arena_slot(arena(), i)->state) == SLOT_USED
            && arena_slot(arena(), i)->parent == parent;
    return n;
}

static int keys_of(uint64_t birth)
{
    int n = 0;
    for (int i = 0; i < KEYS_MAX; i++)
        n += load_acquire64(&arena()->keys[i].owner) == birth
            && load_acquire32(&arena()->keys[i].ready);
    return n;
}

static void look(const struct writer *w)
{
    comm_is_there(scene.front, 1, "front");
    comm_is_there(scene.behind, 3, "behind");
    if (scene.freed)
        comm_is_there(scene.freed, 2, "freed");
    struct slot *made = slot_of(77, 1);
    assert_non_null(made);
    assert_ptr_equal(slot_of(77, 1), made);
    assert_int_equal(slots_of(77), 1);
    assert_int_equal(sweeps(), 0);
    assert_int_equal(keys_of(scene.freed_birth), scene.freed ? 1 : 0);
    uint64_t bare = scene.bare->birth;
    if (w->again) {
        assert_int_equal(tutti_once("fresh", nothing, NULL, scene.bare, NULL), 0);
        assert_int_equal(keys_of(bare), 1);
    }
    assert_int_equal(tutti_comm_free(scene.bare), 0);
    assert_int_equal(sweeps(), 0);
    assert_int_equal(keys_of(bare), 0);
    assert_int_equal(arena_site(arena(), old_site), scene.old_site);
    uint32_t site = arena_site(arena(), new_site);
    assert_true(site != 0 && site == arena_site(arena(), new_site));
    assert_string_equal(arena_site_text(arena(), site), new_site);
}

static void test_every_store(void **state)
{
    (void)state;
    uint64_t lots = team_seed();
    bool all = getenv("TUTTI_PROVE") != NULL;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        const struct writer *w = &writers[i];
        long most = 0, tried = 0;
        begin(w->freed);
        most = die_after(w, INT64_MAX);
        look(w);
        tutti_finalize(scene.world);
        long stride = all || most <= SHARE ? 1 : (most + SHARE - 1) / SHARE;
        for (long at = stride > 1 ? (long)(team_random(&lots) % (uint64_t)stride) : 0; at < most;
             at += stride, tried++) {
            begin(w->freed);
            die_after(w, at);
            look(w);
            tutti_finalize(scene.world);
        }
        print_message("%s: %ld of %ld points\n", w->name, tried, most);
        assert_true(tried > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_store) };
    char why[200];
    trial_open();
    if (!trial_allowed(why, sizeof why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    go = mmap(NULL, sizeof *go, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return go == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
