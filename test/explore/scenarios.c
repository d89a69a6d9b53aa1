/* The list of scenarios; what each does stands in the files beside this one. */
#include "explore/scenarios.h"

#include <string.h>

const struct scenario *const explore_scenarios[] = {
#define S(name) &scenario_##name,
    EXPLORE_SCENARIOS(S)
#undef S
    NULL
};

const struct scenario *explore_find(const char *name)
{
    for (int i = 0; explore_scenarios[i]; i++)
        if (!strcmp(explore_scenarios[i]->name, name))
            return explore_scenarios[i];
    return NULL;
}
