/* Rules are parsed once, from the text in the arena, when a world is made. A choice is then a walk
 * over a few ranges. Only what is chosen is written: each page of the table costs a rank's start a
 * page fault. */
#include "coll/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char select_default[] =
    "barrier:-inf=flags;barrier/crowded:-inf=central;"
    "broadcast:-88=inline,-64k=eager,-inf=pipelined;"
    "reduce:-88=inline,-64k=eager,-inf=pipelined;"
    "reduce/crowded:-88=inline,-256k=eager,-inf=pipelined;"
    "all_reduce:-88=inline,-64k=eager,-inf=pipelined;"
    "all_reduce/crowded:-88=inline,-32k=eager,-inf=pipelined;"
    "all_reduce_many:-64k=eager,-inf=pipelined;"
    "reduce_scatter:-88=inline,-128k=eager,-inf=pipelined;"
    "reduce_scatter_v:-64k=eager,-inf=pipelined;"
    "all_gather:-88=inline,-64k=eager,-inf=pipelined;all_gather_v:-64k=eager,-inf=pipelined;"
    "gather:-88=inline,-64k=eager,-inf=pipelined;gather_v:-inf=pipelined;"
    "scatter:-88=inline,-128k=eager,-inf=pipelined;"
    "scatter/crowded:-88=inline,-256k=eager,-2m=pipelined,-inf=direct;scatter_v:-inf=pipelined;"
    "all_to_all:-88=inline,-128k=eager,-inf=pipelined;all_to_all_v:-inf=pipelined;"
    "scan:-88=inline,-64k=eager,-inf=pipelined;exscan:-88=inline,-64k=eager,-inf=pipelined;"
    "same:-inf=inline;"
    "broadcast/two:-88=inline,-256k=eager,-inf=pipelined;"
    "reduce/two:-88=inline,-256k=eager,-16m=rooted,-inf=pipelined;"
    "all_reduce/two:-88=inline,-256k=eager,-inf=pipelined;"
    "reduce_scatter/two:-88=inline,-256k=eager,-inf=pipelined;"
    "all_gather/two:-88=inline,-256k=eager,-inf=pipelined;"
    "gather/two:-88=inline,-256k=eager,-inf=pipelined;"
    "scatter/two:-88=inline,-256k=eager,-inf=pipelined;"
    "all_to_all/two:-88=inline,-256k=eager,-inf=pipelined;"
    "scan/two:-88=inline,-256k=eager,-inf=pipelined;"
    "exscan/two:-88=inline,-256k=eager,-inf=pipelined;"
    "device:-1m=pinned,-inf=leader;staged:-4m=pinned,-inf=leader";

const struct algorithm *select_all(void) { return &algorithm_table[ALGORITHM_FIRST]; }

static const char *const roads[] = {
    [ROAD_PINNED] = "pinned", [ROAD_LEADER] = "leader", [ROAD_PEERS] = "peers"
};
enum { ROADS = sizeof roads / sizeof roads[0] };

static const char *const road_clauses[] = { [ROAD_PLACE] = "device", [ROAD_STAGED] = "staged" };

static const char *const select_suffixes[] = {
    [COMMS_OTHER] = "", [COMMS_CROWDED] = "/crowded", [COMMS_TWO] = "/two"
};

const char *select_suffix(enum comms comms) { return select_suffixes[comms]; }

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

/* What the layers below have: the last entries of each list. */
struct layers_below { int used[KIND_COUNT][COMMS], roads[2]; };

static void select_over(struct road_choices *to, const int *below,
                        const struct road_choice *choices, int n)
{
    int more = below ? *below : 0;
    memmove(to->at + n, to->at + to->used - more, sizeof choices[0] * (size_t)more);
    memcpy(to->at, choices, sizeof choices[0] * (size_t)n);
    to->used = n + more;
    to->named = below != NULL;
}

/* The entry at `from` moves to `to`, and those behind it, `n` in all. */
static void select_move(struct rules *rules, enum kind kind, enum comms which, int to, int from,
                        int n)
{
    for (int i = 0; i < n; i++) {
        int k = to > from ? n - 1 - i : i;
        rules->choices[to + k][kind][which] = rules->choices[from + k][kind][which];
    }
}

static int select_roads(struct rules *rules, const struct layers_below *below,
                        enum road_memory memory, char *list, struct text *why)
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
        select_over(&rules->roads[m], below ? &below->roads[m] : NULL, choices, n);
    return 0;
}

static int select_clause(struct rules *rules, const struct layers_below *below, char *clause,
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
            return select_roads(rules, below, (enum road_memory)m, list, why);
    char *slash = strchr(clause, '/');
    enum comms comms = COMMS_OTHER;
    for (enum comms i = COMMS_CROWDED; slash && i < COMMS; i++)
        if (!strcmp(slash, select_suffixes[i]))
            comms = i;
    if (comms)
        *slash = 0;
    enum kind kind = select_kind(clause);
    if (kind == KIND_NONE) {
        text_add(why, "\"%.60s\" has no algorithms to choose from; kinds:", clause);
        for (const struct algorithm *a = select_all(); a->name; a++)
            if (a == select_all() || a[-1].kind != a->kind)
                text_add(why, " %s", kind_name(a->kind));
        text_add(why, ", each with /crowded or /two; device staged");
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
    /* A plain clause holds for all comms, until one for some of them follows. */
    for (enum comms which = comms; which < (comms ? comms + 1 : COMMS); which++) {
        int more = below ? below->used[kind][which] : 0;
        select_move(rules, kind, which, n, rules->used[kind][which] - more, more);
        for (int i = 0; i < n; i++)
            rules->choices[i][kind][which] = choices[i];
        rules->used[kind][which] = n + more;
    }
    return 0;
}

static int select_text(struct rules *rules, const struct layers_below *below, const char *text,
                       size_t length, struct text *why)
{
    char *copy = strndup(text, length), *rest = NULL;
    int r = copy ? 0 : -ENOMEM;
    for (char *s = copy ? strtok_r(copy, "; ", &rest) : NULL; s && r == 0;
         s = strtok_r(NULL, "; ", &rest))
        r = select_clause(rules, below, s, why);
    free(copy);
    return r;
}

/* True: a clause of the text says how device memory goes. */
static bool select_names_roads(const char *text, size_t length)
{
    for (size_t at = 0, n; at < length; at += n + 1) {
        n = strcspn(text + at, "; |");
        for (int m = ROAD_PLACE; m <= ROAD_STAGED; m++) {
            size_t letters = strlen(road_clauses[m]);
            if (n > letters && !strncmp(text + at, road_clauses[m], letters)
                && text[at + letters] == ':')
                return true;
        }
    }
    return false;
}

/* Comms of two ranks go like others. */
static void select_two_as_others(struct rules *rules)
{
    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        int n = rules->used[kind][COMMS_TWO] = rules->used[kind][COMMS_OTHER];
        for (int i = 0; i < n; i++)
            rules->choices[i][kind][COMMS_TWO] = rules->choices[i][kind][COMMS_OTHER];
    }
}

/* A text over what is there. The choices for two ranks below it have one phase up to 256 KiB, where
 * device memory is copied whole. If the text says how that memory goes, they do not hold. */
static int select_layer(struct rules *rules, const char *text, size_t length, struct text *why)
{
    struct layers_below below;
    if (select_names_roads(text, length))
        select_two_as_others(rules);
    memcpy(below.used, rules->used, sizeof below.used);
    for (int m = ROAD_PLACE; m <= ROAD_STAGED; m++)
        below.roads[m] = rules->roads[m].used;
    return select_text(rules, &below, text, length, why);
}

static int select_base(struct rules *rules, struct text *why)
{
    memset(rules->used, 0, sizeof rules->used);
    for (int m = ROAD_PLACE; m <= ROAD_STAGED; m++)
        rules->roads[m].used = 0;
    return select_text(rules, NULL, select_default, strlen(select_default), why);
}

int select_parse(struct rules *rules, const char *text, struct text *why)
{
    int r = select_base(rules, why);
    return r < 0 || !text ? r : select_layer(rules, text, strlen(text), why);
}

int select_check(const char *text, struct text *why)
{
    char said[256];
    struct text wrong = TEXT_IN(said);
    if (!*text)
        return 0;
    if (strlen(text) >= RULES_TEXT) {
        text_add(why, "TUTTI_ALGORITHM is longer than %d bytes", RULES_TEXT - 1);
        return -EINVAL;
    }
    struct rules *rules = malloc(sizeof *rules);
    if (!rules)
        return -ENOMEM;
    text_clear(&wrong);
    int r = select_parse(rules, text, &wrong);
    free(rules);
    if (r < 0)
        text_add(why, "TUTTI_ALGORITHM: %s", said);
    return r;
}

int select_layers(struct rules *rules, const char *text, struct text *why)
{
    size_t first = strcspn(text, "|");
    int r = select_base(rules, why);
    if (r == 0)
        r = select_layer(rules, text, first, why);
    if (r == 0 && text[first])
        r = select_layer(rules, text + first + 1, strlen(text + first + 1), why);
    return r;
}

const struct algorithm *select_algorithm(const struct rules *rules, enum kind kind,
                                         enum comms comms, size_t bytes)
{
    for (int i = 0; i < rules->used[kind][comms]; i++) {
        const struct choice *c = &rules->choices[i][kind][comms];
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
