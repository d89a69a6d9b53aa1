/* Who failed first, from ends and arenas written by hand: no process is needed to know what would
 * be said of it. */
#include "launch/children.h"

#include "watch/verdict.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 4 };
#define EXIT(code) ((code) << 8)

struct fixture { struct arena arena; struct children children; };

static void begin(struct fixture *f)
{
    char said[256];
    struct text why = TEXT_IN(said);
    struct arena_plan plan = { SIZE, "blame", 16 << 20, "", 0, 0, 0 };
    text_clear(&why);
    assert_int_equal(arena_create(&f->arena, &plan, &why), 0);
    assert_int_equal(children_begin(&f->children, SIZE, &f->arena), 0);
}

static void end(struct fixture *f)
{
    children_end(&f->children);
    arena_detach(&f->arena);
}

/* The end of one rank, as seen in that turn. */
static void ended(struct fixture *f, int rank, unsigned turn, int status)
{
    f->children.child[rank] = (struct child){
        .pid = 1000 + rank, .status = status, .turn = turn, .started = true, .ended = true
    };
}

static void joined(struct fixture *f)
{
    for (int r = 0; r < SIZE; r++)
        store_release32(&f->arena.seats[r].state, SEAT_JOINED);
}

static void verdict(struct fixture *f, uint32_t slot_index, enum why why, uint32_t by, uint32_t who,
                    const uint32_t *ranks, uint32_t n)
{
    struct slot *slot = arena_slot(&f->arena, slot_index);
    slot->size = n;
    for (uint32_t i = 0; i < n; i++)
        slot->world_rank[i] = ranks[i];
    store_release64(&slot->verdict, verdict_confirmed(verdict_make(7, why, by, who)));
    store_release32(&slot->state, SLOT_USED);
    if (load_acquire32(&f->arena.join->reached) <= slot_index)
        store_release32(&f->arena.join->reached, slot_index + 1);
}

static void test_order(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    assert_int_equal(children_blame(&f.children), -1);
    ended(&f, 0, 1, 0);                                   /* early and well */
    ended(&f, 1, 3, EXIT(1));
    ended(&f, 2, 2, EXIT(4));
    assert_int_equal(children_blame(&f.children), 2);
    ended(&f, 3, 2, SIGSEGV);                             /* in the same look a signal says more */
    assert_int_equal(children_blame(&f.children), 3);
    f.children.child[3].turn = 3;               /* no rank of ours: a later signal is just later */
    assert_int_equal(children_blame(&f.children), 2);
    end(&f);
}

static void test_killed_member(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    joined(&f);
    ended(&f, 0, 1, EXIT(1));
    ended(&f, 1, 1, EXIT(1));
    ended(&f, 2, 5, SIGKILL);                   /* died first, but had much memory to give back */
    assert_int_equal(children_blame(&f.children), 2);
    f.children.child[2].ours = true;                             /* we did it */
    assert_int_equal(children_blame(&f.children), 0);
    end(&f);
}

static void test_verdict(void **state)
{
    static const uint32_t all[] = { 0, 1, 2, 3 }, some[] = { 3, 1 };
    struct fixture f;
    (void)state;
    begin(&f);
    joined(&f);
    ended(&f, 0, 1, SIGABRT);                       /* what became of it when it heard of rank 1 */
    ended(&f, 1, 2, EXIT(3));
    ended(&f, 2, 1, EXIT(1));
    ended(&f, 3, 1, EXIT(1));
    assert_int_equal(children_blame(&f.children), 0);
    verdict(&f, 0, WHY_MISMATCH, 0, 2, all, 4);     /* says nothing of who went */
    assert_int_equal(children_blame(&f.children), 0);
    verdict(&f, 1, WHY_LEFT, 0, 0, some, 2);        /* rank 3 left a comm */
    assert_int_equal(children_blame(&f.children), 3);
    verdict(&f, 2, WHY_DIED, 0, 1, some, 2);        /* a death before it */
    assert_int_equal(children_blame(&f.children), 1);
    f.children.child[1].status = 0;                         /* whoever ends well has not failed */
    assert_int_equal(children_blame(&f.children), 3);
    end(&f);
}

static void test_join(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    ended(&f, 0, 1, EXIT(1));
    ended(&f, 3, 2, EXIT(9));
    store_release32(&f.arena.join->failed_rank, 3 + 1);
    store_release32(&f.arena.join->state, JOIN_FAILED);
    assert_int_equal(children_blame(&f.children), 3);
    store_release32(&f.arena.join->failed_rank, UINT32_MAX); /* late: nobody's name */
    assert_int_equal(children_blame(&f.children), 0);
    end(&f);
}

static void says(const struct fixture *f, int rank, const char *text)
{
    char said[512];
    struct text t = TEXT_IN(said);
    text_clear(&t);
    children_add_blame(&f->children, rank, &t);
    assert_string_equal(said, text);
}

static void test_words(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    ended(&f, 2, 1, SIGKILL);
    says(&f, 2, "rank 2 (pid 1002) was killed by signal 9 (SIGKILL)");
    ended(&f, 0, 1, EXIT(1));
    says(&f, 2,
         "rank 2 (pid 1002) was killed by signal 9 (SIGKILL); 1 other rank ended because of it "
         "(exit status 1)");
    ended(&f, 1, 1, EXIT(2));
    says(&f, 2,
         "rank 2 (pid 1002) was killed by signal 9 (SIGKILL); 2 other ranks ended because of it");
    ended(&f, 3, 1, SIGTERM);
    f.children.child[3].ours = true;
    says(&f, 1,
         "rank 1 (pid 1001) ended with exit status 2; 2 other ranks ended because of it; 1 rank "
         "was ended by tutti run");
    assert_int_equal(children_exit_status(EXIT(7)), 7);
    assert_int_equal(children_exit_status(SIGSEGV), 139);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_killed_member),
        cmocka_unit_test(test_verdict), cmocka_unit_test(test_join), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
