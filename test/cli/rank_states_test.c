/* What tutti ps and tutti why make of an arena: of one that is whole, and of 200 that are broken at
 * random, each truncated, scribbled on, or of another version. All of this arena's ranks are this
 * process. */
/* ctest: timeout=200 */
#include "cli/ps.h"

#include "arena/offsets.h"
#include "base/clock.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 8, BROKEN = 200 };

static uint64_t seed;

static uint64_t dice(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* ---- an arena: ranks 0 to 6 wait in barrier #88, rank 7 has ended all_reduce #87 ---- */

static void record(struct member *m, const struct arena *arena, uint64_t number, uint64_t stamp,
                   const char *site, bool ended)
{
    /* relaxed: nobody else looks, in all of this file */
    uint64_t head = load_relaxed64(&m->head) + 1;
    struct record *r = &m->journal[head % JOURNAL_RECORDS];
    uint64_t seq = arena->header->first_seq + number;
    store_relaxed64(&r->seq, seq);
    store_relaxed64(&r->descriptor, stamp);
    store_relaxed64(&r->count, stamp & (STAMP_HASHED - 1));
    store_relaxed64(&r->began, clock_tick());
    store_relaxed64(&r->ended, ended ? record_ended(0, true, 0) : 0);
    store_relaxed64(&r->how, record_how(arena_site(arena, site), 0));
    store_relaxed64(&m->arrival[seq & 1].seq, seq);
    store_relaxed64(&m->arrival[seq & 1].descriptor, stamp);
    store_relaxed64(&m->head, head);
}

static void make(struct arena *arena)
{
    char room[256];
    struct text why = TEXT_IN(room);
    struct process_id self;
    text_clear(&why);
    process_self(&self);
    struct arena_plan plan = {
        .size = RANKS, .job = "night \033[31mrun", .span_bytes = 2 << 20, .first_seq = 1000,
        .store_bytes = 2 << 20
    };
    assert_int_equal(arena_create(arena, &plan, &why), 0);
    struct slot *slot = arena_slot(arena, 0);
    store_relaxed32(&arena->join->state, JOIN_COMPLETE);
    store_relaxed32(&arena->join->reached, 1);
    slot->size = RANKS;
    slot->birth = 1;
    store_relaxed32(&slot->state, SLOT_USED);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct seat *seat = &arena->seats[r];
        struct member *m = arena_member(slot, r);
        slot->world_rank[r] = r;
        store_relaxed32(&seat->state, SEAT_JOINED);
        seat->id = self;
        snprintf(seat->program, sizeof seat->program, "python3");
        record(m, arena, 87, fingerprint_make(KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 0, 1024),
               "/home/u/train.py:39", true);
        if (r < RANKS - 1)
            record(m, arena, 88, fingerprint_make(KIND_BARRIER, 0, 0, 0, 0), "/home/u/train.py:41",
                   false);
    }
}

/* The part of an arena that says what its ranks do, as a file of its own. */
static int copy(const struct arena *arena)
{
    size_t n = arena->header->slots_at + arena->header->slot_bytes, done = 0;
    int fd = memfd_create("tutti", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)arena->bytes), 0);
    while (done < n) {
        ssize_t wrote = pwrite(fd, arena->base + done, n - done, (off_t)done);
        assert_true(wrote > 0);
        done += (size_t)wrote;
    }
    return fd;
}

static void put(int fd, uint64_t at, uint64_t word)
{
    assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
}

/* ---- a look ---- */

static struct rank_process process[RANKS];

static void attend(const char *state)
{
    for (int r = 0; r < RANKS; r++)
        process[r] = (struct rank_process){ .pid = getpid(), .tid = getpid(), .state = state };
}

/* True: it could be read. */
static bool look(struct seen_job *job, int fd)
{
    struct arena_copy g;
    struct text why = TEXT_IN(job->why);
    memset(job, 0, sizeof *job);
    job->pid = getpid();
    job->uid = geteuid();
    if (arena_copy_take(&g, fd, &why) != 0)
        return false;
    assert_int_equal(rank_states_fill(&job->m, &g, process, clock_now(), PS_STUCK_NS), 0);
    blockers_find(&job->blockers, &g, &job->m);
    arena_copy_drop(&g);
    return true;
}

/* All that may be shown of it. */
static char *shown(struct seen_job *job)
{
    char *all;
    size_t n;
    struct seen_jobs jobs = { .at = job, .n = 1 };
    FILE *out = open_memstream(&all, &n);
    ps_line(out, job);
    ps_classes(out, job);
    ps_every(out, job);
    ps_json(out, &jobs);
    ps_prometheus(out, &jobs);
    fclose(out);
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)all[i] < 0x20 && all[i] != '\n') || (unsigned char)all[i] == 0x7f)
            fail_msg("byte %zu of what is shown is %02x", i, (unsigned char)all[i]);
    return all;
}

static int lines(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

static void must_show(struct seen_job *job, const char *what)
{
    char *all = shown(job);
    if (!strstr(all, what))
        fail_msg("not shown: \"%s\"; but:\n%s", what, all);
    free(all);
}

/* ---- tests ---- */

static void classes_and_keeper(void **state)
{
    (void)state;
    struct arena arena;
    struct seen_job job;
    struct classes c;
    attend("sleeping");
    process[7].state = "running";
    make(&arena);
    int fd = copy(&arena);
    assert_true(look(&job, fd));
    assert_string_equal(job.m.job, "night \\x1b[31mrun");
    assert_int_equal(rank_states_classes(&job.m, &c), 0);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.begin[1], RANKS - 1);
    assert_int_equal(c.ranks[c.begin[1]], 7);
    classes_drop(&c);
    assert_int_equal(job.blockers.kind, BLOCKED_KEPT);
    assert_int_equal(job.blockers.waiters_n, RANKS - 1);
    assert_int_equal(job.blockers.keepers_n, 1);
    assert_int_equal(job.blockers.keepers[0], 7);
    assert_int_equal(job.m.status, JOB_FINE);
    must_show(&job, "ranks 0-6: barrier #88 at u/train.py:41 for ");
    must_show(&job, ", asleep");
    must_show(&job, "rank 7: in its own code for ");
    must_show(&job, ", last: all_reduce f32 sum 1024 #87 at u/train.py:39");
    must_show(&job, "\"kind\":\"all_reduce\",\"comm\":\"world\",\"site\":\"/home/u/train.py:39\","
                    "\"number\":87,\"type\":\"f32\",\"count\":1024,\"bytes\":4096,\"op\":\"sum\"");
    rank_states_drop(&job.m);
    close(fd);
    arena_detach(&arena);
}

static enum job_status status_of(const struct arena *arena, uint64_t stuck_ns)
{
    struct seen_job job;
    struct arena_copy g;
    struct text why = TEXT_IN(job.why);
    int fd = copy(arena);
    assert_int_equal(arena_copy_take(&g, fd, &why), 0);
    assert_int_equal(rank_states_fill(&job.m, &g, process, clock_now(), stuck_ns), 0);
    enum job_status status = job.m.status;
    rank_states_drop(&job.m);
    arena_copy_drop(&g);
    close(fd);
    return status;
}

/* Each worse one shows over the one before. */
static void statuses(void **state)
{
    (void)state;
    struct arena arena;
    attend("sleeping");
    make(&arena);
    assert_int_equal(status_of(&arena, UINT64_MAX), JOB_FINE);
    assert_int_equal(status_of(&arena, 1), JOB_STUCK);
    process[3] = (struct rank_process){ .gone = true };
    assert_int_equal(status_of(&arena, 1), JOB_DEAD);
    uint64_t v = verdict_confirmed(verdict_make(1088, WHY_MISMATCH, 1, 3));
    store_relaxed64(&arena_slot(&arena, 0)->verdict, v);
    assert_int_equal(status_of(&arena, 1), JOB_FAILED);
    arena_detach(&arena);
}

/* A work under way is no wait of its caller's. */
static void work_is_no_wait(void **state)
{
    (void)state;
    struct arena arena;
    attend("running");
    make(&arena);
    for (uint32_t r = 0; r < RANKS; r++)
        store_relaxed64(&arena_member(arena_slot(&arena, 0), r)->queued, 1088);
    assert_int_equal(status_of(&arena, 1), JOB_FINE);
    arena_detach(&arena);
}

/* A wait for a key shows that key, as it may be shown, and is for whoever is free to set it. */
static void key_and_deadline(void **state)
{
    (void)state;
    struct arena arena;
    struct seen_job job;
    attend("sleeping");
    make(&arena);
    for (uint32_t r = 0; r < RANKS - 1; r++) {
        struct member *m = arena_member(arena_slot(&arena, 0), r);
        store_relaxed64(&journal_hand(m)->descriptor, fingerprint_make(KIND_GET, 0, 0, 0, 0));
        store_relaxed64(&journal_hand(m)->seq, 0);
        memset(m->awaited, 'k', AWAITED_TEXT);       /* without an end */
        m->awaited[1] = '\033';
        m->left = 2000000001;
    }
    process[6].state = "stopped";
    int fd = copy(&arena);
    assert_true(look(&job, fd));
    assert_int_equal(job.blockers.kind, BLOCKED_KEY);
    assert_int_equal(job.blockers.keepers_n, 2);
    assert_int_equal(job.blockers.keepers[0], 6);
    assert_int_equal(job.blockers.keepers[1], 7);
    assert_int_equal(job.m.rank[0].left_ns, 2000000001);
    assert_int_equal(job.m.rank[7].left_ns, 0);
    must_show(&job, ", for key \"k\\x1bkkk");
    rank_states_drop(&job.m);
    close(fd);
    arena_detach(&arena);
}

/* 64 ranks of which each does something else: a screen is enough. */
static void fits_a_screen(void **state)
{
    (void)state;
    enum { MANY = 64 };
    struct seen_job job = { .pid = 1, .m = { .size = MANY } };
    char *all;
    size_t n;
    job.m.rank = calloc(MANY, sizeof *job.m.rank);
    for (uint32_t r = 0; r < MANY; r++) {
        struct rank_state *s = &job.m.rank[r];
        s->rank = r;
        s->doing.called = true;
        snprintf(s->site, sizeof s->site, "/a/long/path/of/some/file_%u.py:%u", r, r);
        s->doing.operation = (struct op_record){
            .became = true, .number = r + 1, .site = s->site,
            .descriptor = fingerprint_make(KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 0, r)
        };
    }
    FILE *out = open_memstream(&all, &n);
    ps_classes(out, &job);
    fclose(out);
    assert_true(lines(all) < SCREEN_LINES);
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= SCREEN_COLUMNS);
    free(all);
    rank_states_drop(&job.m);
}

/* ---- broken ones ---- */

static void break_header(int fd)
{
    static const size_t words[] = {
        offsetof(struct arena_header, magic), offsetof(struct arena_header, layout_hash),
        offsetof(struct arena_header, version), offsetof(struct arena_header, size),
        offsetof(struct arena_header, bytes), offsetof(struct arena_header, seats_at),
        offsetof(struct arena_header, slot_bytes), offsetof(struct arena_header, store_at)
    };
    put(fd, words[dice() % (sizeof words / sizeof words[0])], dice());
}

/* Random words in what stands behind the header, mostly where something stands. The first seat
   stays whole: a job of which no rank is there is not shown. */
static void scribble(int fd, const struct arena *arena)
{
    const struct arena_header *h = arena->header;
    const uint64_t from[] = {
        PLACES_JOIN, h->seats_at + sizeof(struct seat), h->sites_at, h->slots_at, h->slots_at
    };
    const uint64_t bytes[] = {
        4096, (RANKS - 1) * sizeof(struct seat), SITES_MAX * sizeof(struct site),
        layout_slot_head(RANKS), h->slot_bytes
    };
    for (int i = 1 << dice() % 14; i > 0; i--) {
        size_t k = dice() % 5;
        /* small numbers lead further than large ones */
        uint64_t word = dice() % 2 ? dice() : dice() % 64 << dice() % 40;
        put(fd, from[k] + dice() % (bytes[k] / 8) * 8, word);
    }
}

static int broken(const struct arena *arena, int i)
{
    int fd = copy(arena);
    switch (i % 4) {
    case 0:
        assert_int_equal(ftruncate(fd, (off_t)(dice() % (dice() % 2 ? 16384 : arena->bytes))), 0);
        break;
    case 1:
        break_header(fd);
        break;
    default:
        scribble(fd, arena);
        break;
    }
    return fd;
}

/* Lines of the command, which reads the arenas out of this process: those with one of two words,
 * but not what continues a line. */
static int lines_of(const char *verb, const char *one, const char *other)
{
    char command[512], line[8192];
    int n = 0;
    snprintf(command, sizeof command, "'%s/tutti' %s", getenv("TUTTI_BUILD"), verb);
    FILE *out = popen(command, "re");
    while (fgets(line, sizeof line, out)) {
        assert_non_null(strchr(line, '\n'));
        n += strncmp(line, "    ", 4) && (strstr(line, one) || strstr(line, other));
    }
    int status = pclose(out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LOOK_UNREADABLE);
    return n;
}

static void broken_arenas(void **state)
{
    (void)state;
    struct arena arena;
    struct seen_job job;
    int fd[BROKEN], read = 0;
    const char *given = getenv("TUTTI_TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_ns() | 1;
    print_message("TUTTI_TEST_SEED=%llu\n", (unsigned long long)seed);
    make(&arena);
    for (int i = 0; i < BROKEN; i++) {
        attend(dice() % 2 ? "running" : dice() % 2 ? "stopped" : NULL);
        fd[i] = broken(&arena, i);
        bool could = look(&job, fd[i]);
        if (could != (i % 4 >= 2))
            fail_msg("arena %d: %s", i, could ? "passed as whole" : job.why);
        if (!could)
            assert_true(job.why[0]);
        char *all = shown(&job);
        char *end = strchr(all, '\n');
        assert_non_null(end);
        free(all);
        read += could;
        rank_states_drop(&job.m);
    }
    arena_detach(&arena);
    if (getenv("TUTTI_BUILD")) {
        char could[32], not[32], why[32];
        snprintf(could, sizeof could, "(pid %d)", (int)getpid());
        snprintf(not, sizeof not, "pid %d:", (int)getpid());
        snprintf(why, sizeof why, "why %d", (int)getpid());
        int said = lines_of("ps", could, not), more = lines_of(why, "", "");
        print_message("%d of %d could be read; %d lines of tutti ps, %d of tutti why\n", read,
                      BROKEN, said, more);
        assert_int_equal(said, BROKEN);
        assert_true(more <= BROKEN - read + 5 * read);
    }
    for (int i = 0; i < BROKEN; i++)
        close(fd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_keeper), cmocka_unit_test(statuses),
        cmocka_unit_test(work_is_no_wait), cmocka_unit_test(key_and_deadline),
        cmocka_unit_test(fits_a_screen),
        cmocka_unit_test(broken_arenas),
    };
    alarm(150);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
