/* Who is there and who is not: the living, zombies, the reaped, another process under the
 * same number, a thread that ended, an exec, another pid namespace; each asked with a pidfd
 * and without. */
#include "os/process.h"

#include "child.h"
#include "support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* CLONE_NEWTIME, which some headers lack. */
enum { NEW_TIME = 0x80 };

struct scene { struct process_id id, second; struct child_pipe here, go; };

static struct scene *new_scene(void)
{
    struct scene *s = child_memory(sizeof *s);
    child_pipe_open(&s->here);
    child_pipe_open(&s->go);
    return s;
}

static void end_scene(struct scene *s)
{
    child_pipe_close(&s->here);
    child_pipe_close(&s->go);
}

static int waits(void *arg)
{
    struct scene *s = arg;
    CHILD_CHECK(process_self(&s->id) == 0);
    CHILD_CHECK(child_say(&s->here) == 0);
    return child_hear(&s->go) == 0 ? 0 : 1;
}

static pid_t start(struct scene *s, int (*fn)(void *))
{
    pid_t pid = child_start(fn, s);
    assert_int_equal(child_hear(&s->here), 0);
    return pid;
}

/* By both ways at once. */
static void expect_alive(const struct process_id *id, int pidfd, int wanted)
{
    assert_int_equal(process_alive(id, -1), wanted);
    if (pidfd >= 0)
        assert_int_equal(process_alive(id, pidfd), wanted);
}

static void test_this_process_is_alive(void **state)
{
    (void)state;
    struct process_id id;
    assert_int_equal(process_self(&id), 0);
    assert_int_equal(id.pid, getpid());
    assert_int_equal(id.tid, gettid());
    assert_true(id.start > 0);
    assert_true(id.pid_namespace > 0);
    int pidfd = process_pidfd(&id);
    if (pidfd >= 0) {
        assert_true(pidfd >= 100);
        assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
    }
    expect_alive(&id, pidfd, 1);
    if (pidfd >= 0)
        close(pidfd);
}

static void test_a_child_lives_dies_and_is_reaped(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    siginfo_t info;
    pid_t pid = start(s, waits);
    int pidfd = process_pidfd(&s->id);
    assert_int_equal(s->id.pid, pid);
    assert_true(child_becomes(&s->id, "sleeping"));
    expect_alive(&s->id, pidfd, 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(kill(pid, 0), 0);               /* which is why kill is not what we ask */
    expect_alive(&s->id, pidfd, 0);
    assert_string_equal(process_state(&s->id, NULL), "zombie");
    child_reap(pid);
    expect_alive(&s->id, pidfd, 0);
    assert_string_equal(process_state(&s->id, NULL), "gone");
    assert_true(process_pidfd(&s->id) < 0);
    if (pidfd >= 0)
        close(pidfd);
    end_scene(s);
}

static void test_a_number_used_again_is_another(void **state)
{
    (void)state;
    uint64_t cpu = 1;
    struct process_id id;
    process_self(&id);
    id.start += 100;
    assert_int_equal(process_alive(&id, -1), 0);
    assert_true(process_pidfd(&id) < 0);
    assert_string_equal(process_state(&id, &cpu), "gone");
    assert_int_equal(cpu, 0);
}

/* ---- other clocks: a time namespace shows other start times ---- */

struct clocks { struct process_id machine, other; };
static const char *offset;

static int enters(void *arg)
{
    struct clocks *c = arg;
    CHILD_CHECK(process_self(&c->other) == 0);
    CHILD_CHECK(c->other.start != 0);
    CHILD_CHECK(process_alive(&c->machine, -1) == 1);
    CHILD_CHECK(strcmp(process_state(&c->machine, NULL), "gone") != 0);
    int pidfd = process_pidfd(&c->machine);
    CHILD_CHECK(pidfd >= 0 || pidfd == -ENOSYS);
    struct process_id another = c->machine;
    another.start += 100;
    CHILD_CHECK(process_alive(&another, -1) == 0);
    return 0;
}

/* The namespace is its children's; itself it stays outside, and looks at them. */
static int makes_a_clock(void *arg)
{
    struct clocks *c = arg;
    int fd = unshare(NEW_TIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0 || write(fd, offset, strlen(offset)) < 0)
        return CHILD_SKIP;
    close(fd);
    CHILD_CHECK(process_alive(&c->machine, -1) == 1);
    return child_run(enters, c);
}

static void test_another_clock(void **state)
{
    (void)state;
    static const char *const offsets[] = { "monotonic 100000 0\nboottime 100000 0\n",
                                           "monotonic 7 5000\n"
                                           "boottime 7 777777777\n" };
    struct clocks *c = child_memory(sizeof *c);
    assert_int_equal(process_self(&c->machine), 0);
    for (int i = 0; i < 2; i++) {
        offset = offsets[i];
        int r = child_run(makes_a_clock, c);
        if (r == CHILD_SKIP)
            skip_because("no namespace of clocks can be made here");
        assert_int_equal(r, 0);
        assert_in_range(c->other.start, c->machine.start, c->machine.start + 100 * PATIENCE_S);
    }
}

/* The one who lives on there is seen from here. */
static int lives_in_another_clock(void *arg)
{
    struct scene *s = arg;
    int fd = unshare(NEW_TIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC) : -1;
    s->second.pid = fd >= 0 && write(fd, offset, strlen(offset)) > 0;
    if (!s->second.pid)
        child_say(&s->here);
    return s->second.pid ? child_run(waits, s) : CHILD_SKIP;
}

static void test_somebody_in_another_clock(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    offset = "monotonic 100000 0\nboottime 100000 0\n";
    pid_t pid = start(s, lives_in_another_clock);
    if (s->second.pid) {
        int pidfd = process_pidfd(&s->id);
        assert_true(pidfd >= 0 || pidfd == -ENOSYS);
        expect_alive(&s->id, pidfd, 1);
        assert_string_not_equal(process_state(&s->id, NULL), "gone");
        child_say(&s->go);
        close(pidfd);
    }
    int status = child_reap(pid);
    end_scene(s);
    if (WEXITSTATUS(status) == CHILD_SKIP)
        skip_because("no namespace of clocks can be made here");
    assert_int_equal(status, 0);
}

static void test_another_namespace_cannot_be_asked(void **state)
{
    (void)state;
    struct process_id id;
    process_self(&id);
    id.pid_namespace++;
    assert_int_equal(process_alive(&id, -1), -EXDEV);
    assert_int_equal(process_pidfd(&id), -EXDEV);
    assert_string_equal(process_state(&id, NULL), "out of sight");
}

/* In a pid namespace of its own, but with our /proc, where the child's number means
 * somebody else. */
static int asks_from_inside(void *arg)
{
    struct scene *s = arg;
    struct process_id self;
    CHILD_CHECK(getpid() == 1);
    CHILD_CHECK(process_self(&self) == 0);
    CHILD_CHECK(self.pid == 1 && self.pid_namespace != s->id.pid_namespace);
    CHILD_CHECK(process_alive(&self, -1) == 1);
    CHILD_CHECK(process_alive(&s->id, -1) == -EXDEV);
    int pidfd = process_pidfd(&self);
    CHILD_CHECK(pidfd < 0 || process_alive(&self, pidfd) == 1);
    pid_t ancestor;
    uint64_t began;
    CHILD_CHECK(process_ancestor("anything", &ancestor, &began) == -ENOENT);
    return 0;
}

static int goes_inside(void *arg)
{
    if (unshare(CLONE_NEWPID) != 0)
        return CHILD_SKIP;
    return child_run(asks_from_inside, arg);
}

static void test_a_foreign_proc_is_not_believed(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    process_self(&s->id);
    int result = child_run(goes_inside, s);
    end_scene(s);
    if (result == CHILD_SKIP)
        skip_because("no pid namespace can be made here");
    assert_int_equal(result, 0);
}

static void *thread_says_its_id(void *arg)
{
    struct scene *s = arg;
    process_self(&s->second);
    child_say(&s->here);
    child_hear(&s->go);
    return NULL;
}

static void test_a_thread_that_ended_is_gone(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, thread_says_its_id, s), 0);
    assert_int_equal(child_hear(&s->here), 0);
    assert_int_not_equal(s->second.tid, getpid());
    assert_int_equal(s->second.pid, getpid());
    int pidfd = process_pidfd(&s->second);
    expect_alive(&s->second, pidfd, 1);
    assert_int_equal(child_say(&s->go), 0);
    pthread_join(thread, NULL);
    /* the kernel takes it off the list a moment after the join */
    assert_true(child_becomes(&s->second, "gone"));
    expect_alive(&s->second, pidfd, 0);
    if (pidfd >= 0)
        close(pidfd);
    end_scene(s);
}

static int leader_ends(void *arg)
{
    struct scene *s = arg;
    pthread_t thread;
    CHILD_CHECK(process_self(&s->id) == 0);
    CHILD_CHECK(pthread_create(&thread, NULL, thread_says_its_id, s) == 0);
    pthread_exit(NULL);
}

/* /proc/PID says "zombie" for a process whose first thread ended; the rank of another of its
 * threads lives. */
static void test_a_process_without_its_first_thread_lives(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    pid_t pid = start(s, leader_ends);
    assert_true(child_becomes(&s->id, "zombie"));
    int pidfd = process_pidfd(&s->second);
    expect_alive(&s->second, pidfd, 1);
    expect_alive(&s->id, pidfd, 0);
    child_kill(pid);
    if (pidfd >= 0)
        close(pidfd);
    end_scene(s);
}

static void *thread_stays(void *arg)
{
    struct scene *s = arg;
    process_self(&s->second);
    child_say(&s->here);
    for (;;)
        pause();
    return NULL;
}

/* Every end of "here" that the child has closes by its exec; the program then waits for
 * its input. */
static int execs_under_a_thread(void *arg)
{
    struct scene *s = arg;
    pthread_t thread;
    CHILD_CHECK(pthread_create(&thread, NULL, thread_stays, s) == 0);
    CHILD_CHECK(child_hear(&s->go) == 0);
    CHILD_CHECK(fcntl(s->here.ends[1], F_SETFD, FD_CLOEXEC) == 0);
    CHILD_CHECK(dup2(s->go.ends[0], 0) == 0);
    close(s->go.ends[1]);
    execlp("cat", "cat", (char *)NULL);
    return 1;
}

static void test_an_exec_elsewhere_ends_the_thread(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    char byte;
    pid_t pid = start(s, execs_under_a_thread);
    int pidfd = process_pidfd(&s->second);
    expect_alive(&s->second, pidfd, 1);
    child_say(&s->go);
    close(s->here.ends[1]);
    assert_int_equal(read(s->here.ends[0], &byte, 1), 0);    /* the end: the exec has happened */
    assert_int_equal(kill(pid, 0), 0);
    expect_alive(&s->second, pidfd, 0);
    child_kill(pid);
    if (pidfd >= 0)
        close(pidfd);
    close(s->here.ends[0]);
    child_pipe_close(&s->go);
}

static int spins(void *arg)
{
    struct scene *s = arg;
    process_self(&s->id);
    child_say(&s->here);
    for (;;)
        cpu_pause();
    return 0;
}

static void test_states_have_words(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    uint64_t cpu = 0;
    int status;
    pid_t pid = start(s, spins);
    assert_true(child_becomes(&s->id, "running"));
    while (cpu == 0)
        assert_string_equal(process_state(&s->id, &cpu), "running");
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_string_equal(process_state(&s->id, &cpu), "stopped");
    assert_int_equal(process_alive(&s->id, -1), 1);
    uint64_t later;
    process_state(&s->id, &later);
    assert_true(later == cpu);
    child_kill(pid);
    end_scene(s);
}

static void test_names_may_be_anything(void **state)
{
    (void)state;
    char before[32], name[32], small[4];
    struct process_id id, same;
    process_self(&same);
    process_name(getpid(), before, sizeof before);
    assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b"), 0);
    process_name(getpid(), name, sizeof name);
    assert_string_equal(name, "a) R 1 (b");
    process_name(getpid(), small, sizeof small);
    assert_string_equal(small, "a) ");
    assert_int_equal(process_self(&id), 0);
    assert_true(id.start == same.start);
    assert_int_equal(process_alive(&id, -1), 1);
    assert_string_equal(process_state(&id, NULL), "running");
    prctl(PR_SET_NAME, before);
    process_name(-1, name, sizeof name);
    assert_string_equal(name, "?");
}

struct search { const char *name; struct process_id wanted; int depth; };

static int searches(void *arg)
{
    struct search *search = arg;
    pid_t pid;
    uint64_t began;
    prctl(PR_SET_NAME, "something else");
    if (search->depth-- > 0)
        return child_run(searches, search);
    CHILD_CHECK(process_ancestor(search->name, &pid, &began) == 0);
    CHILD_CHECK(pid == search->wanted.pid && began == search->wanted.start);
    CHILD_CHECK(process_ancestor("nobody's name", &pid, &began) == -ENOENT);
    return 0;
}

static void test_an_ancestor_is_found_by_name(void **state)
{
    (void)state;
    char before[32];
    process_name(getpid(), before, sizeof before);
    struct search search = { "hydra_pmi_proxy and more", { 0 }, 0 };
    assert_int_equal(prctl(PR_SET_NAME, "hydra_pmi_proxy"), 0);
    process_self(&search.wanted);
    for (int depth = 0; depth < 3; depth++) {
        search.depth = depth;
        assert_int_equal(child_run(searches, &search), 0);
    }
    prctl(PR_SET_NAME, before);
}

static int exits(void *arg) { return *(int *)arg; }

static int is_killed(void *arg)
{
    raise(*(int *)arg);
    return 0;
}

static void expect_status(int status, const char *wanted)
{
    char room[80];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    process_add_status(&t, status);
    assert_string_equal(room, wanted);
}

static void test_statuses_have_words(void **state)
{
    (void)state;
    int three = 3, signal = SIGKILL;
    expect_status(child_reap(child_start(exits, &three)), "exit status 3");
    expect_status(child_reap(child_start(is_killed, &signal)), "killed by signal 9 (SIGKILL)");
    expect_status(SIGSEGV | 0x80, "killed by signal 11 (SIGSEGV), core dumped");
    expect_status(SIGSTOP << 8 | 0x7f, "stopped by signal 19 (SIGSTOP)");
    expect_status(0xffff, "an end that could not be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_process_is_alive),
        cmocka_unit_test(test_a_child_lives_dies_and_is_reaped),
        cmocka_unit_test(test_a_number_used_again_is_another),
        cmocka_unit_test(test_another_clock),
        cmocka_unit_test(test_somebody_in_another_clock),
        cmocka_unit_test(test_another_namespace_cannot_be_asked),
        cmocka_unit_test(test_a_foreign_proc_is_not_believed),
        cmocka_unit_test(test_a_thread_that_ended_is_gone),
        cmocka_unit_test(test_a_process_without_its_first_thread_lives),
        cmocka_unit_test(test_an_exec_elsewhere_ends_the_thread),
        cmocka_unit_test(test_states_have_words),
        cmocka_unit_test(test_names_may_be_anything),
        cmocka_unit_test(test_an_ancestor_is_found_by_name),
        cmocka_unit_test(test_statuses_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
