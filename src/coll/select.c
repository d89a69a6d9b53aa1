/* Rules are parsed once, from the text in the arena, when a world is made. A choice is then a walk
 * over a few ranges. */
#include "coll/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char select_default[] =
    "barrier:-inf=flags;barrier/crowded:-inf=central;"
    "broadcast:-88=inline,-64k=eager,-inf=pipelined;"
    "reduce:-88=inline,-64k=eager,-inf=pipelined;"
    "all_reduce:-88=inline,-64k=eager,-inf=pipelined;"
    "all_reduce/crowded:-88=inline,-32k=eager,-inf=pipelined;"
    "all_reduce_many:-64k=eager,-inf=pipelined;"
    "reduce_scatter:-88=inline,-128k=eager,-inf=pipelined;"
    "reduce_scatter_v:-64k=eager,-inf=pipelined;"
    "all_gather:-88=inline,-64k=eager,-inf=pipelined;all_gather_v:-64k=eager,-inf=pipelined;"
    "gather:-88=inline,-64k=eager,-inf=pipelined;gather_v:-inf=pipelined;"
    "scatter:-88=inline,-128k=eager,-inf=pipelined;"
    "scatter/crowded:-88=inline,-64k=eager,-2m=pipelined,-inf=direct;scatter_v:-inf=pipelined;"
    "all_to_all:-88=inline,-128k=eager,-inf=pipelined;all_to_all_v:-inf=pipelined;"
    "scan:-88=inline,-64k=eager,-inf=pipelined;exscan:-88=inline,-64k=eager,-inf=pipelined;"
    "same:-inf=inline;"
    "device:-1m=pinned,-inf=leader;staged:-4m=pinned,-inf=leader";

const struct algorithm *select_all(void) { return &algorithm_table[ALGORITHM_FIRST]; }

static const char *const roads[] = {
    [ROAD_PINNED] = "pinned", [ROAD_LEADER] = "leader", [ROAD_PEERS] = "peers"
};
enum { ROADS = sizeof roads / sizeof roads[0] };

static const char *const road_clauses[] = { [ROAD_PLACE] = "device", [ROAD_STAGED] = "staged" };

const char *road_name(enum road road) { return roads[road]; }

static enum kind select_kind(const char *name)
{
    for (const struct algorithm *a = select_all(); a->name; a++)
        if (!strcmp(kind_name(a->kind), name))
            return a->kind;
    return KIND_NONE;
}

/* Old names in rules: rules that users have written stay valid. */
static const struct { const char *before, *now; } renamed[] = {
    { "line", "inline" },
    { "flat", "eager" },
    { "ring", "pipelined" },
    { "pull", "direct" },
};

const struct algorithm *select_named(enum kind kind, const char *name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (!strcmp(name, renamed[i].before))
            name = renamed[i].now;
    for (const struct algorithm *a = select_all(); a->name; a++)
        if (a->kind == kind && !strcmp(a->name, name))
            return a;
    return NULL;
}

static int select_size(const char *s, size_t *size)
{
    uint64_t bytes;
    if (!strcmp(s, "inf")) {
        *size = SIZE_MAX;
        return 0;
    }
    if (text_parse_bytes(s, &bytes) < 0)
        return -EINVAL;
    *size = bytes;
    return 0;
}

/* Parses LOW-HIGH=NAME and returns NAME. NULL: it is no such range. */
static char *select_range(char *s, size_t *low, size_t *high, struct text *why)
{
    char *name = strchr(s, '='), *dash = strchr(s, '-');
    if (!name || !dash || dash > name) {
        text_add(why, "\"%.60s\": expected LOW-HIGH=ALGORITHM, as in -64k=eager", s);
        return NULL;
    }
    *name++ = 0;
    *dash++ = 0;
    *low = 0;
    if ((*s && select_size(s, low) < 0) || select_size(dash, high) < 0 || *low > *high) {
        text_add(why, "\"%.30s-%.30s\": expected sizes in bytes, low to high, with k, M, G, or inf",
                 s, dash);
        return NULL;
    }
    return name;
}

static int select_choice(enum kind kind, char *s, struct choice *choice, struct text *why)
{
    const char *name = select_range(s, &choice->low, &choice->high, why);
    if (!name)
        return -EINVAL;
    choice->algorithm = select_named(kind, name);
    if (choice->algorithm)
        return 0;
    text_add(why, "\"%.60s\" is no algorithm of %s; there are:", name, kind_name(kind));
    for (const struct algorithm *a = select_all(); a->name; a++)
        if (a->kind == kind)
            text_add(why, " %s", a->name);
    return -EINVAL;
}

static void select_over(struct road_choices *to, const struct road_choices *under,
                        const struct road_choice *choices, int n)
{
    int more = under ? under->used : 0;
    memcpy(to->at, choices, sizeof choices[0] * (size_t)n);
    if (more)
        memcpy(to->at + n, under->at, sizeof choices[0] * (size_t)more);
    to->used = n + more;
    to->named = under != NULL;
}

static int select_roads(struct rules *rules, const struct rules *under, enum road_memory memory,
                        char *list, struct text *why)
{
    struct road_choice choices[CHOICES_MAX];
    char *rest = NULL;
    int n = 0;
    for (char *s = strtok_r(list, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        if (n == CHOICES_MAX) {
            text_add(why, "%s: more than %d choices", road_clauses[memory], CHOICES_MAX);
            return -EINVAL;
        }
        const char *name = select_range(s, &choices[n].low, &choices[n].high, why);
        if (!name)
            return -EINVAL;
        int road = 0;
        while (road < ROADS && strcmp(roads[road], name))
            road++;
        if (road == ROADS) {
            text_add(why, "\"%.60s\" is no road of device memory; there are: pinned leader peers",
                     name);
            return -EINVAL;
        }
        choices[n++].road = (enum road)road;
    }
    if (n == 0) {
        text_add(why, "%s: no choice; expected LOW-HIGH=ROAD, as in -1m=pinned",
                 road_clauses[memory]);
        return -EINVAL;
    }
    for (int m = (int)memory; m <= ROAD_STAGED; m++)
        select_over(&rules->roads[m], under ? &under->roads[m] : NULL, choices, n);
    return 0;
}

static int select_clause(struct rules *rules, const struct rules *under, char *clause,
                         struct text *why)
{
    char *list = strchr(clause, ':'), *rest = NULL;
    if (!list) {
        text_add(why,
                 "\"%.60s\": expected KIND:LOW-HIGH=ALGORITHM,…, as in "
                 "all_reduce:-88=inline,-inf=pipelined",
                 clause);
        return -EINVAL;
    }
    *list++ = 0;
    for (int m = ROAD_PLACE; m <= ROAD_STAGED; m++)
        if (!strcmp(clause, road_clauses[m]))
            return select_roads(rules, under, (enum road_memory)m, list, why);
    char *slash = strchr(clause, '/');
    int crowded = slash && !strcmp(slash, "/crowded");
    if (slash && crowded)
        *slash = 0;
    enum kind kind = select_kind(clause);
    if (kind == KIND_NONE) {
        text_add(why, "\"%.60s\" has no algorithms to choose from; kinds:", clause);
        for (const struct algorithm *a = select_all(); a->name; a++)
            if (a == select_all() || a[-1].kind != a->kind)
                text_add(why, " %s", kind_name(a->kind));
        text_add(why, ", each with /crowded; device staged");
        return -EINVAL;
    }
    struct choice choices[CHOICES_MAX];
    int n = 0;
    for (char *s = strtok_r(list, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        if (n == CHOICES_MAX) {
            text_add(why, "%.60s: more than %d choices", clause, CHOICES_MAX);
            return -EINVAL;
        }
        int r = select_choice(kind, s, &choices[n++], why);
        if (r < 0)
            return r;
    }
    if (n == 0) {
        text_add(why, "%.60s: no choice; expected LOW-HIGH=ALGORITHM, as in -64k=eager", clause);
        return -EINVAL;
    }
    /* A plain clause holds for crowded comms too, until a /crowded clause follows. */
    for (int which = crowded; which < 2; which++) {
        struct choice *to = rules->choices[kind][which];
        int more = under ? under->used[kind][which] : 0;
        memcpy(to, choices, sizeof choices[0] * (size_t)n);
        if (under)
            memcpy(to + n, under->choices[kind][which], sizeof choices[0] * (size_t)more);
        rules->used[kind][which] = n + more;
    }
    return 0;
}

static int select_text(struct rules *rules, const struct rules *under, const char *text,
                       struct text *why)
{
    char *copy = strdup(text), *rest = NULL;
    int r = copy ? 0 : -ENOMEM;
    for (char *s = copy ? strtok_r(copy, "; ", &rest) : NULL; s && r == 0;
         s = strtok_r(NULL, "; ", &rest))
        r = select_clause(rules, under, s, why);
    free(copy);
    return r;
}

int select_parse(struct rules *rules, const char *text, struct text *why)
{
    struct rules base;
    memset(&base, 0, sizeof base);
    int r = select_text(&base, NULL, select_default, why);
    *rules = base;
    return r < 0 || !text ? r : select_text(rules, &base, text, why);
}

int select_layers(struct rules *rules, const char *text, struct text *why)
{
    size_t first = strcspn(text, "|");
    struct rules *under = text[first] ? malloc(sizeof *under) : NULL;
    char *below = under ? strndup(text, first) : NULL;
    int r = !text[first] ? select_parse(rules, text, why)
        : below ? select_parse(rules, below, why)
        : -ENOMEM;
    if (r == 0 && text[first]) {
        *under = *rules;
        r = select_text(rules, under, text + first + 1, why);
    }
    free(below);
    free(under);
    return r;
}

const struct algorithm *select_algorithm(const struct rules *rules, enum kind kind, bool crowded,
                                         size_t bytes)
{
    for (int i = 0; i < rules->used[kind][crowded]; i++) {
        const struct choice *c = &rules->choices[kind][crowded][i];
        if (bytes >= c->low && bytes <= c->high && bytes <= c->algorithm->most)
            return c->algorithm;
    }
    return NULL;        /* not for a kind that has rows: the default's last choice takes any size */
}

bool select_road_named(const struct rules *rules, enum road_memory memory)
{
    return rules->roads[memory].named;
}

enum road select_road(const struct rules *rules, enum road_memory memory, size_t bytes)
{
    const struct road_choices *from = &rules->roads[memory];
    for (int i = 0; i < from->used; i++)
        if (bytes >= from->at[i].low && bytes <= from->at[i].high)
            return from->at[i].road;
    return ROAD_PINNED;
}
