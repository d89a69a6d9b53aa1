/* The writer does nothing else, so most instants at which it is killed or read are in a record. */
#include "support/recorder.h"

#include "base/clock.h"
#include "watch/journal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void recorder_write(struct member *m, uint64_t first_seq, uint64_t number)
{
    struct watch w = { .mine = m };
    const struct journal_entry e = {
        .seq = first_seq + number,
        .descriptor = fingerprint_make(KIND_SEND, 0, 0, 0, number & 0xffffff),
        .count = number * 3, .how = record_how((uint32_t)number * 5, (uint32_t)number * 7),
        .tick = number, .arrived = true, .letter = true, .about = (uint32_t)number * 11,
        .tag = (uint32_t)number * 13
    };
    journal_well(journal_enter(&w, &e), 0);
}

pid_t recorder_start(struct member *m, uint64_t first_seq, uint64_t number)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;; number++)
            recorder_write(m, first_seq, number);
    }
    return pid;
}

void recorder_stop(pid_t pid)
{
    if (kill(pid, SIGKILL) != 0 || waitpid(pid, NULL, 0) != pid)
        abort();
}

void recorder_hold(pid_t pid)
{
    int status;
    if (kill(pid, SIGSTOP) != 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
        abort();
}

void recorder_go_on(pid_t pid)
{
    if (kill(pid, SIGCONT) != 0)
        abort();
}

bool recorder_whole(const struct history_op *op)
{
    uint64_t number = op->number;
    bool whole = op->descriptor == fingerprint_make(KIND_SEND, 0, 0, 0, number & 0xffffff)
        && op->count == number * 3 && op->site == (uint32_t)number * 5
        && op->algorithm == (uint32_t)number * 7 && op->about == (uint32_t)number * 11
        && op->tag == (uint32_t)number * 13 && op->result == 0;
    if (!whole)
        printf("torn: record %llu with descriptor %llx, count %llu, site %u, algorithm %u, about "
               "%u, tag %u, result %d\n", (unsigned long long)number,
               (unsigned long long)op->descriptor, (unsigned long long)op->count, op->site,
               op->algorithm, op->about, op->tag, op->result);
    return whole;
}
