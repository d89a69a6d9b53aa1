/* Job: signals as things to read: those that end or concern the job, and the news that a rank
 *      has written.
 * Owns: the launcher's signal mask, and its dispositions of SIGCHLD and SIGPIPE; gives them
 *       back in a rank.
 * Never: what becomes of the job.
 *
 * The ranks stay in the launcher's process group: they are the terminal's foreground job together,
 * so that a rank may read the terminal, Ctrl-Z stops and fg continues all of them. A Ctrl-C
 * therefore reaches every rank by the terminal itself, and must not be passed on a second time (a
 * second SIGINT makes many programs give up their orderly end): a signal that the kernel made is
 * not passed on, one that a process sent to us is. A process that signals the whole group (kill
 * -INT -PGID, timeout without --foreground) cannot be told from one that signals us alone; there a
 * rank gets the signal twice. */
#ifndef TUTTI_LAUNCH_SIGNALS_H
#define TUTTI_LAUNCH_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct signals {
    int control;                 /* readable: SIGCHLD or a signal to pass on */
    int writes;                  /* readable: a rank has written (launch/relay) */
    sigset_t mask;               /* as we found it */
    struct sigaction child, pipe;
};

struct signals_news { int number; bool from_terminal; };

int  signals_begin(struct signals *s);                           /* 0 or -errno */
void signals_end(struct signals *s);
void signals_let_end(void);             /* no ranks any more: a request to end may simply end us */
/* between fork and exec: everything as we found it */
void signals_in_child(const struct signals *s);
bool signals_next(struct signals *s, struct signals_news *news); /* false: nothing more for now */
bool signals_ends_job(int number);              /* a request to end, or only news for the ranks */
int  signals_of_writes(void);                       /* the number by which pipes report writes */

#endif
