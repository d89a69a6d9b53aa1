/* Job: read signals: those that end or concern the job, and those that report a rank's write.
 * Owns: the launcher's signal mask, and its dispositions of SIGCHLD and SIGPIPE; gives them back in
 *       a rank.
 * Never: decides what becomes of the job.
 *
 * The ranks stay in the launcher's process group. Together they are the terminal's foreground job,
 * so a rank may read the terminal, Ctrl-Z stops all of them, and fg continues all of them. A Ctrl-C
 * reaches every rank through the terminal itself. It must not be passed on a second time: a second
 * SIGINT makes many programs give up their orderly end. So a signal that the kernel made is not
 * passed on; one that a process sent to us is. We cannot see whether a process signals the whole
 * group (kill -INT -PGID, timeout without --foreground) or us alone. If the whole group, a rank
 * gets the signal twice. */
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
/* Between fork and exec: restores everything as we found it. */
void signals_in_child(const struct signals *s);
bool signals_next(struct signals *s, struct signals_news *news); /* false: nothing more for now */
bool signals_ends_job(int number);              /* true: a request to end; false: for the ranks */
int  signals_of_writes(void);                       /* the number by which pipes report writes */

#endif
