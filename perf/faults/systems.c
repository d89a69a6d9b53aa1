/* Everybody is started as its manual says, with nothing changed but what a machine with fewer cores
 * than ranks and a root account ask for. Variants show where an option, or the lack of one, changes
 * an outcome. */
#include "faults/systems.h"

#include "harness/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIT(fault) (1u << (fault))
#define DEATHS (BIT(KILL_BARRIER) | BIT(KILL_REDUCE) | BIT(LEAVE))
#define MISTAKES (BIT(CALLS) | BIT(COUNTS) | BIT(TYPES) | BIT(ROOT))
#define DEADLINES (BIT(DEADLINE) | BIT(STOP) | BIT(CYCLE))

static char tutti_path[512] = "tutti";

const struct peer_system peer_systems[] = {
    { "tutti", "tutti", "rank_tutti", { tutti_path, "run" }, NULL, 0, false, false },
    { "openmpi", "Open MPI", "rank_openmpi", { LAUNCH_OPENMPI }, NULL, 0, false, false },
    { "mpich", "MPICH", "rank_mpich", { LAUNCH_MPICH }, NULL, 0, false, false },
    { "gloo", "Gloo", "rank_gloo", { NULL }, NULL, 0, false, false },
    { "tutti-patient", "tutti, default deadline (30 min)", "rank_tutti", { tutti_path, "run" },
      "tutti", DEADLINES, false, true },
    { "gloo-patient", "Gloo, default deadline (30 s)", "rank_gloo", { NULL }, "gloo", DEADLINES,
      false, true },
    { "openmpi-recovery", "mpirun --enable-recovery", "rank_openmpi",
      { LAUNCH_OPENMPI, "--enable-recovery" }, "openmpi", DEATHS, false, false },
    { "mpich-recovery", "mpiexec -disable-auto-cleanup", "rank_mpich",
      { LAUNCH_MPICH, "-disable-auto-cleanup" }, "mpich", DEATHS, false, false },
    { "openmpi-fatal", "Open MPI, MPI_ERRORS_ARE_FATAL", "rank_openmpi", { LAUNCH_OPENMPI },
      "openmpi", MISTAKES, true, false },
    { "mpich-fatal", "MPICH, MPI_ERRORS_ARE_FATAL", "rank_mpich", { LAUNCH_MPICH }, "mpich",
      MISTAKES, true, false },
};
const int peer_system_count = sizeof peer_systems / sizeof *peer_systems;
_Static_assert(sizeof peer_systems / sizeof *peer_systems <= SYSTEMS_MAX,
               "tables have room for them");

const struct fault_name fault_names[FAULTS] = {
    [KILL_BARRIER] = { "kill_barrier", "SIGKILL; the others wait in a barrier" },
    [KILL_REDUCE] = { "kill_reduce", "SIGKILL in the middle of an all_reduce of 16 MiB" },
    [LEAVE] = { "leave", "exit(0) without a goodbye; the others wait in a barrier" },
    [DEADLINE] = { "deadline", "computes for ever; the others wait in a barrier" },
    [STOP] = { "stop", "SIGSTOP; the others wait in a barrier" },
    [CYCLE] = { "cycle", "barriers on two comms, in the other order" },
    [CALLS] = { "calls", "barrier; the others all_reduce" },
    [COUNTS] = { "counts", "all_reduce of 500 floats; the others of 1000" },
    [TYPES] = { "types", "all_reduce of floats; the others of doubles" },
    [ROOT] = { "root", "broadcast from itself; the others from rank 0" },
    [WIPE] = { "wipe", "SIGKILL to the whole job: what is left in /dev/shm and /tmp" },
};

void system_tutti(const char *path)
{
    snprintf(tutti_path, sizeof tutti_path, "%s", path);
}

bool system_version(const struct peer_system *s, const char *programs, char *to, size_t room)
{
    char command[1024];
    snprintf(command, sizeof command, "'%s/%s' --version 2>&1", programs, s->program);
    *to = 0;
    snprintf(to, room, "%s/%s", programs, s->program);
    if (access(to, X_OK) != 0 || (*s->launcher && !foreign_on_path(s->launcher[0])))
        return false;
    FILE *f = popen(command, "r");
    if (!f)
        return false;
    bool said = fgets(to, (int)room, f) != NULL;
    to[strcspn(to, "\n")] = 0;
    return pclose(f) == 0 && said;
}
