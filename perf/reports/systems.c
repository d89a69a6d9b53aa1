/* Who it was, and in which settings; and a peer that is not there is said, with its reason, and not
 * passed over: a table without it would look as if it had been beaten. */
#include "reports/question.h"

void remark_systems(struct report *r, const struct team *team, const struct measured *m)
{
    for (int i = 0; i < team->count; i++)
        if (m[i].in && *team_about(team, i))
            report_remark(r, false, "%s %s", team->contenders[i].name, team_about(team, i));
        else if (!m[i].in && m[i].why[0])
            report_remark(r, !(team->contenders[i].setting && team->contenders[i].setting->system),
                          "%s not measured: %s", team->contenders[i].name, m[i].why);
}
