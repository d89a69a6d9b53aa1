/* What a look amounts to, for scripts: the worst job decides. */
#include "cli/ps.h"

#include <errno.h>
#include <string.h>

int ps_seconds(const char *s, uint64_t *ns)
{
    char with_unit[32];
    int64_t ms;
    bool bare = *s && strspn(s, "0123456789") == strlen(s);
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
