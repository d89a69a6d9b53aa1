/* What a look amounts to, for scripts: the worst job decides. */
#include "cli/ps.h"

#include "base/error.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* "0.25", with up to nine digits behind the point. */
static bool parts_of_seconds(const char *s, uint64_t *ns)
{
    char whole[16], part[16];
    int64_t seconds, parts;
    const char *point = strchr(s, '.');
    size_t digits = point ? strlen(point + 1) : 0;
    if (!point || point - s >= (ptrdiff_t)sizeof whole || !digits || digits > 9 || *s == '-')
        return false;
    snprintf(whole, sizeof whole, "%.*s", (int)(point - s), s);
    snprintf(part, sizeof part, "%s%.*s", point + 1, (int)(9 - digits), "000000000");
    if (text_parse_int(whole, 0, 1000000000, &seconds) < 0
        || text_parse_int(part, 0, 999999999, &parts) < 0)
        return false;
    *ns = (uint64_t)seconds * 1000000000 + (uint64_t)parts;
    return true;
}

int ps_seconds(const char *s, uint64_t *ns)
{
    char with_unit[32];
    int64_t ms;
    bool bare = *s && strspn(s, "0123456789") == strlen(s);
    if (parts_of_seconds(s, ns))
        return 0;
    snprintf(with_unit, sizeof with_unit, "%.24s%s", s, bare ? "s" : "");
    if (text_parse_duration_ms(with_unit, &ms) || ms < 0)
        return -EINVAL;
    *ns = (uint64_t)ms * 1000000;
    return 0;
}

static int worse(int a, int b) { return a > b ? a : b; }

int ps_status(const struct seen_jobs *j)
{
    int status = 0;
    for (size_t i = 0; i < j->n; i++)
        status = worse(status, j->at[i].why[0] ? LOOK_UNREADABLE : (int)j->at[i].m.status);
    return status;
}

int ps_end(const struct seen_jobs *j, const char *only)
{
    if (fflush(stdout) != 0)
        return LOOK_FAILED;
    return only && j->n == 0 ? LOOK_NO_JOB : ps_status(j);
}

int ps_failed(const char *verb, int error)
{
    fprintf(stderr, "tutti %s: the processes cannot be looked at: %s\n", verb, error_system(error));
    return LOOK_FAILED;
}
