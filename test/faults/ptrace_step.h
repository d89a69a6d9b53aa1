/* Job: one process is led by the hand: instruction by instruction, or from one change of shared
 *      memory to the next, and stopped or killed there.
 * Owns: the ptrace hold on a child of the caller; in that child, the protection of the
 *       arena's pages.
 * Never: what the child runs, or whether what follows is right.
 *
 * What others can see of a process changes by its stores to shared memory and by its system calls,
 * and by nothing else. The walk by events stops after each of these: the arena's control pages are
 * made read-only in the child alone, so that each store there is a fault; the one instruction is
 * then let through. In between the child runs at full speed, so the thousandth store is as near as
 * the first. x86-64 only: system calls are put into the child by its registers. */
#ifndef TUTTI_TEST_FAULTS_PTRACE_STEP_H
#define TUTTI_TEST_FAULTS_PTRACE_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum stepped {
    STEP_ON,            /* one step further */
    STEP_ASLEEP,        /* it sleeps in a system call; the next walk goes on waiting for its end */
    STEP_MARK,          /* it has come to step_mark() */
    STEP_GONE           /* it has ended, or met a signal that is none of ours (fault) */
};

struct step {
    pid_t pid;                        /* what is led: a process, or one thread of it */
    pid_t process;
    bool asleep;        /* the last walk found it so: it runs, and no new command has been given */
    bool single;        /* what it was told then: one instruction, or up to the next system call */
    bool caught;        /* stopped by step_catch, and not told to go on since */
    bool shielded;
    bool keeps_all;                   /* every system call is an event */
    /* the last instruction was one: a store to what is shielded, or such a system call */
    bool event;
    /* what is shielded; bytes are known before base where the mapping is made on the way */
    uint64_t base, bytes;
    int fault;                        /* signal that it met, 0: none */
    /* it has ended and is reaped: nobody may be asked for, or killed, by its number */
    bool over;
    int status;                       /* how, as waitpid gives it; -1: nobody knows */
};

/* By the child: a place to stop at. Under no tracer it is a SIGTRAP. */
void step_mark(void);

/* By the parent, before it forks: what the walks' bounded waits need. */
void step_prepare(void);
/* A child that comes to no stop in so many seconds is killed: the walk finds it gone. 0: it may
 * take its time again. */
void step_bound(const struct step *s, unsigned seconds);
void step_child(void);                /* by each child: undoes that */

bool step_seize(struct step *s, pid_t pid);          /* false: refused, errno says why */
/* The same, and stops it where it is. other: its one other thread, which alone is led. False: it
   has ended (status says how, if it has been reaped with that), or there is no such thread. */
bool step_catch(struct step *s, pid_t pid, bool other);
bool step_to_mark(struct step *s);                   /* at full speed; false: it ended instead */

/* base 0: as soon as `bytes` or more are mapped shared. */
bool step_shield(struct step *s, uint64_t base, uint64_t bytes);
bool step_unshield(struct step *s);

/* Shielded, the next instruction must not be an madvise of what is shielded. */
enum stepped step_instruction(struct step *s);
/* To right after the next store to what is shielded, or system call that others can notice: not
 * those that only read a file or a clock. */
enum stepped step_event(struct step *s);

/* SIGKILL, and reaped. The shield is taken away before: the kernel has marks to make */
void step_kill(struct step *s);

char step_state(pid_t pid);                          /* as /proc says: R, S, D, t, Z; 0: gone */

#endif
