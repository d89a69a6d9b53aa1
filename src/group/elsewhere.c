/* Names of tutti_init are tutti.UID.JOB.HASH.N: those of two users differ in one place. Names of
 * another network namespace are other names, however they read: nobody here can see them but in
 * /proc, and there only of processes that are in sight. */
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

/* What stands behind the user's number, which goes to *uid; NULL: there is none. */
static const char *behind_user(const char *name, unsigned long *uid)
{
    char *end;
    if (strncmp(name, prefix, PREFIX) != 0 || name[PREFIX] < '0' || name[PREFIX] > '9')
        return NULL;
    *uid = strtoul(name + PREFIX, &end, 10);
    return *end == '.' ? end : NULL;
}

/* The same but for the candidate's number, one digit at the end? */
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
