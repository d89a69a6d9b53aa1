/* Two processes on one CPU take turns by a word and sched_yield: the price of each turn is one
 * system call and one switch. It is the floor of every barrier with more ranks than CPUs, which
 * needs at least a switch for each rank that has to wait. */
#include "harness/context_switch.h"

#include "base/atomic.h"
#include "harness/stamp.h"
#include "os/cpu.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 1000 };

static void take_turns(shared64 *word, uint64_t parity, uint64_t until)
{
    for (uint64_t turn; (turn = load_acquire64(word)) < until;)
        if ((turn & 1) == parity)
            store_release64(word, turn + 1);
        else
            sched_yield();
}

void context_switch_measure(struct series *to, int samples)
{
    shared64 *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cpu_set_t before;
    if (word == MAP_FAILED || sched_getaffinity(0, sizeof before, &before) < 0 || cpu_bind(0) < 0)
        return;
    uint64_t last = (uint64_t)(samples + 1) * TURNS;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_turns(word, 1, last);
        _exit(0);
    }
    for (uint64_t at = TURNS; pid > 0 && at <= last; at += TURNS) {
        uint64_t began = stamp_now();
        take_turns(word, 0, at);
        if (at > TURNS)                              /* the first is for warming up */
            series_add(to, stamp_ns(stamp_now() - began) / TURNS);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    sched_setaffinity(0, sizeof before, &before);
    munmap(word, 4096);
}
