/* Names of tutti_init are tutti.UID.JOB.HASH.N: the names of two users differ in UID only. An
 * abstract name belongs to one network namespace. Names of another one can be read in /proc only,
 * and only those of visible processes.
 * Cost: milliseconds, a walk through /proc. */
#include "group/elsewhere.h"

#include "group/refused.h"
#include "os/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPACES = 16 };

static const char prefix[] = "tutti.";
enum { PREFIX = sizeof prefix - 1 };

/* The rest of the name behind the user's number, which goes to *uid. NULL: it has no number. */
static const char *behind_user(const char *name, unsigned long *uid)
{
    char *end;
    if (strncmp(name, prefix, PREFIX) != 0 || name[PREFIX] < '0' || name[PREFIX] > '9')
        return NULL;
    *uid = strtoul(name + PREFIX, &end, 10);
    return *end == '.' ? end : NULL;
}

/* True: the same but for the candidate's number, one digit at the end. */
static bool alike(const char *a, const char *b)
{
    size_t n = strlen(a);
    return n > 1 && strlen(b) == n && strncmp(a, b, n - 1) == 0 && b[n - 1] >= '0'
        && b[n - 1] <= '9';
}

/* others: of other users; uid: whose it was */
struct search { const char *name; bool others; unsigned long uid; };

static bool is_ours(const char *name, void *arg)
{
    struct search *s = arg;
    unsigned long mine = 0;
    const char *ours = behind_user(s->name, &mine), *theirs = behind_user(name, &s->uid);
    if (!s->others)
        return alike(s->name, name);
    return ours && theirs && s->uid != mine && alike(ours, theirs);
}

static void look_in(const struct arena *arena, const char *name, pid_t pid)
{
    struct search same = { .name = name }, other = { .name = name, .others = true };
    bool here = pid == getpid();
    if (!here && sockets_any(pid, is_ours, &same))
        refused_note(arena, -1, -EXDEV, "somebody in another network namespace, that of pid %d",
                     (int)pid);
    if (sockets_any(pid, is_ours, &other))
        refused_note(arena, -1, -EACCES, "user %lu, who is not user %u", other.uid,
                     (unsigned)getuid());
}

void elsewhere_look(const struct arena *arena, const char *name)
{
    pid_t pids[SPACES];
    int n = sockets_elsewhere(pids, SPACES);
    look_in(arena, name, getpid());
    for (int i = 0; i < n; i++)
        look_in(arena, name, pids[i]);
}
