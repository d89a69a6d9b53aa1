/* The rules for a job started here, as its ranks would parse them: the built-in ones, over them the
 * machine's file, over that TUTTI_ALGORITHM; and what each algorithm does. Cost: one parse. */
#include "cli/doctor.h"

#include "base/knob.h"
#include "base/text.h"
#include "coll/select.h"
#include "coll/tuning_file.h"
#include "watch/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDE_KIND = 20,
    WIDE_SIZES = 13,
    WIDE_NAME = 11,
    HANG = 2 + WIDE_KIND + WIDE_SIZES + WIDE_NAME
};

/* The largest size with the same choice as `from`. A choice changes only where one begins, or after
 * the end of one. */
static size_t stretch(const struct rules *rules, enum kind kind, enum comms comms, size_t from,
                      size_t *edges, int n)
{
    const struct algorithm *a = select_algorithm(rules, kind, comms, from);
    size_t end = SIZE_MAX;
    for (int i = 0; i < n; i++)
        if (edges[i] > from && edges[i] - 1 < end
            && select_algorithm(rules, kind, comms, edges[i]) != a)
            end = edges[i] - 1;
    return end;
}

static int find_edges(const struct rules *rules, enum kind kind, enum comms comms, size_t *edges)
{
    int n = 0;
    for (int i = 0; i < rules->used[kind][comms]; i++) {
        const struct choice *c = &rules->choices[i][kind][comms];
        edges[n++] = c->low;
        if (c->high < SIZE_MAX)
            edges[n++] = c->high + 1;
        if (c->algorithm->most < SIZE_MAX)
            edges[n++] = c->algorithm->most + 1;
    }
    return n;
}

static void sizes_in_words(struct text *t, size_t from, size_t to)
{
    text_clear(t);
    if (from == 0 && to == SIZE_MAX)
        text_add(t, "any");
    else if (to == SIZE_MAX)
        text_add(t, "above");
    else {
        text_add(t, "to ");
        text_add_bytes(t, to);
    }
}

static void say_kind(const struct rules *rules, enum kind kind, enum comms comms)
{
    size_t edges[3 * LAYERS * CHOICES_MAX], from = 0, to;
    int n = find_edges(rules, kind, comms, edges);
    char name[40], sizes[40];
    struct text t = TEXT_IN(sizes);
    snprintf(name, sizeof name, "%s%s", kind_name(kind), select_suffix(comms));
    do {
        const struct algorithm *a = select_algorithm(rules, kind, comms, from);
        to = stretch(rules, kind, comms, from, edges, n);
        sizes_in_words(&t, from, to);
        doctor_say(HANG, "  %-*s%-*s%-*s%s", WIDE_KIND, from ? "" : name, WIDE_SIZES, sizes,
                   WIDE_NAME, a->name, a->help);
        from = to + 1;
    } while (to < SIZE_MAX);
}

/* The choices for those comms are the ones for others. */
static bool alike(const struct rules *rules, enum kind kind, enum comms comms)
{
    bool alike = rules->used[kind][0] == rules->used[kind][comms];
    for (int i = 0; alike && i < rules->used[kind][0]; i++) {
        const struct choice *c = rules->choices[i][kind];
        alike = c[0].low == c[comms].low && c[0].high == c[comms].high
            && c[0].algorithm == c[comms].algorithm;
    }
    return alike;
}

static void say_device(const struct rules *rules, enum road_memory memory)
{
    static const char *const names[] = { [ROAD_PLACE] = "device", [ROAD_STAGED] = "staged" },
                             *const helps[] = {
                                 [ROAD_PLACE] = "road of buffers that all are device memory",
                                 [ROAD_STAGED] = "the same of memory that peers do not keep open"
                             };
    const struct road_choices *roads = &rules->roads[memory];
    char sizes[40];
    struct text t = TEXT_IN(sizes);
    size_t from = 0, to;
    do {
        enum road road = select_road(rules, memory, from);
        to = SIZE_MAX;
        for (int i = 0; i < roads->used; i++) {
            const struct road_choice *c = &roads->at[i];
            if (c->low > from && c->low - 1 < to && select_road(rules, memory, c->low) != road)
                to = c->low - 1;
            if (c->high < to && c->high >= from && select_road(rules, memory, c->high + 1) != road)
                to = c->high;
        }
        sizes_in_words(&t, from, to);
        doctor_say(HANG, "  %-*s%-*s%-*s%s", WIDE_KIND, from ? "" : names[memory], WIDE_SIZES,
                   sizes, WIDE_NAME, road_name(road), helps[memory]);
        from = to + 1;
    } while (to < SIZE_MAX);
}

static void say_table(const struct rules *rules)
{
    const struct algorithm *all = select_all();
    doctor_say(HANG, "  %-*s%-*s%-*s%s", WIDE_KIND, "collective", WIDE_SIZES, "bytes a rank",
               WIDE_NAME, "by", "what it does and costs");
    for (int i = 0; all[i].name; i++) {
        if (i && all[i].kind == all[i - 1].kind)
            continue;
        for (enum comms comms = COMMS_OTHER; comms < COMMS; comms++)
            if (comms == COMMS_OTHER || !alike(rules, all[i].kind, comms))
                say_kind(rules, all[i].kind, comms);
    }
    say_device(rules, ROAD_PLACE);
    say_device(rules, ROAD_STAGED);
}

/* Prints the state of the file. Its rules, if they are used, go into file[]. */
static void look_at_file(struct doctor *d, char file[RULES_TEXT], bool *used)
{
    char path[TUNED_PATH], said[400];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    file[0] = 0;
    *used = false;
    if (!tuning_file_path(path)) {
        doctor_say(4, "  no file of measured rules (TUTTI_TUNED)");
        return;
    }
    switch (tuning_file_read(path, file, &why)) {
    case TUNED_NONE:
        doctor_say(4, "  not measured here; tutti doctor --tune would write %s", path);
        break;
    case TUNED_ELSEWHERE:
        doctor_say(4,
                   "  %s is of another machine, and not used: it is for %s; tutti doctor --tune "
                   "measures this one",
                   path, said);
        break;
    case TUNED_DAMAGED:
        doctor_wrong(d, "tutti doctor --tune writes it anew; or delete it. Jobs start without it",
                     "%s is damaged, and not used: %s", path, said);
        break;
    case TUNED_HERE:
        doctor_say(4, "  %s: %s", path,
                   file[0] ? file : "nothing better was found here than what is built in");
        *used = file[0] != 0;
    }
}

void doctor_rules(struct doctor *d)
{
    char file[RULES_TEXT], laid[RULES_TEXT], wrong[400];
    struct text why = TEXT_IN(wrong);
    struct rules *rules = malloc(sizeof *rules);
    const char *said = "";
    bool used;
    if (!rules)
        return;
    text_clear(&why);
    doctor_say(2, "rules: which algorithm when; a later line lies over those before it");
    doctor_say(4, "  built in");
    look_at_file(d, file, &used);
    if (knob_text(KNOB_ALGORITHM, &said)
        && (strlen(said) >= RULES_TEXT || select_parse(rules, said, &why) < 0)) {
        doctor_wrong(d, "put it right, or unset it: no job starts with it", "TUTTI_ALGORITHM: %s",
                     why.used ? wrong : "too long");
        said = "";
    } else if (*said)
        doctor_say(4, "  TUTTI_ALGORITHM: %s", said);
    tuning_file_lay(said, laid);
    if (used && !strchr(laid, '|'))
        doctor_wrong(d, "make TUTTI_ALGORITHM shorter",
                     "the two together are longer than %d bytes: the file is not used",
                     RULES_TEXT - 1);
    if (select_layers(rules, laid, &why) == 0)
        say_table(rules);
    free(rules);
}
