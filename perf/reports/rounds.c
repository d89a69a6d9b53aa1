/* A line a round, so that a run can be ended at any time and a file has no end that must be put
 * right. All rounds lie in memory; picking goes through all of them, which for some ten thousand is
 * nothing beside what a round takes. */
#include "reports/rounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const versus_key[VERSUS_SYSTEMS] = {
    "tutti", "openmpi", "mpich", "openmpi5", "mpich5", "impi", "floor", "floorpast", "floordirect",
    "pairwhole", "pairfine", "paircoarse", "pairout", "pairpast"
};

static int numbered(const char *key)
{
    int i = 0;
    while (i < VERSUS_SYSTEMS && strcmp(key, versus_key[i]) != 0)
        i++;
    return i;
}

static enum operation_id operation_named(const char *name)
{
    for (int op = OP_BARRIER; op < OPS; op++)
        if (!strcmp(name, operations[op].name))
            return (enum operation_id)op;
    return OP_NONE;
}

void round_write(const struct round *r, char to[ROUND_BYTES])
{
    int n = snprintf(to, ROUND_BYTES,
                     "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, "
                     "\"line_before\": %.4g, \"line_after\": %.4g, \"load\": %.3g, "
                     "\"when\": %lld, \"ns\": {",
                     operations[r->point.op].name, r->point.ranks, r->point.bytes, r->before,
                     r->after, r->load, r->when);
    const char *comma = "";
    for (int i = 0; i < VERSUS_SYSTEMS; i++)
        if (r->ns[i] > 0) {
            n += snprintf(to + n, ROUND_BYTES - (size_t)n, "%s\"%s\": %.6g", comma, versus_key[i],
                          r->ns[i]);
            comma = ", ";
        }
    snprintf(to + n, ROUND_BYTES - (size_t)n, "}}\n");
}

bool round_read(const char *line, struct round *r)
{
    char name[24], key[24];
    int used = 0, more = 0;
    double ns;
    *r = (struct round){ 0 };
    if (sscanf(line,
               "{\"operation\": \"%23[a-z_]\", \"ranks\": %d, \"bytes\": %zu, "
               "\"line_before\": %lf, \"line_after\": %lf, \"load\": %lf, "
               "\"when\": %lld, \"ns\": {%n",
               name, &r->point.ranks, &r->point.bytes, &r->before, &r->after, &r->load, &r->when,
               &used) != 7 || !used)
        return false;
    r->point.op = operation_named(name);
    for (line += used; sscanf(line, " \"%23[a-z0-9]\": %lf%n", key, &ns, &more) == 2;
         line += more, line += *line == ',') {
        int i = numbered(key);
        if (i == VERSUS_SYSTEMS || !(ns > 0))
            return false;
        r->ns[i] = ns;
    }
    return r->point.op != OP_NONE && r->ns[VERSUS_TUTTI] > 0 && !strcmp(line, "}}\n");
}

static void keep(struct rounds *all, const struct round *r)
{
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 256;
        all->at = realloc(all->at, all->room * sizeof *all->at);
        if (!all->at) {
            perror("versus: rounds");
            exit(2);
        }
    }
    all->at[all->n++] = *r;
}

static bool read_left_out(const char *line, struct left_out *l)
{
    char key[24], name[24];
    *l = (struct left_out){ 0 };
    if (sscanf(line,
               "{\"left_out\": \"%23[a-z0-9]\", \"operation\": \"%23[a-z_]\", \"ranks\": %d, "
               "\"from_bytes\": %zu, \"ns\": %lf, \"tutti_ns\": %lf}",
               key, name, &l->from.ranks, &l->from.bytes, &l->ns, &l->tutti_ns) != 6)
        return false;
    l->from.op = operation_named(name);
    l->system = (enum versus_system)numbered(key);
    return l->from.op != OP_NONE && l->system < VERSUS_SYSTEMS;
}

static void take_line(struct rounds *all, const char *line)
{
    struct round r;
    struct left_out l;
    char key[24], version[VERSION_BYTES];
    if (sscanf(line, "{\"system\": \"%23[a-z0-9]\", \"version\": \"%63[^\"]\"}", key, version) == 2
        && numbered(key) < VERSUS_SYSTEMS)
        snprintf(all->version[numbered(key)], VERSION_BYTES, "%s", version);
    else if (round_read(line, &r))
        keep(all, &r);
    else if (read_left_out(line, &l) && all->left_count < LEFT_OUT_MOST)
        all->left[all->left_count++] = l;
    else
        all->unread++;
}

bool rounds_open(struct rounds *all, const char *path, const char *head, char *why, size_t room)
{
    char line[ROUND_BYTES > HEAD_BYTES ? ROUND_BYTES : HEAD_BYTES] = "";
    bool first = true, ended = true;
    *all = (struct rounds){ 0 };
    if (!path)
        return true;
    all->to = fopen(path, "a+");
    if (!all->to) {
        snprintf(why, room, "%s: %s", path, strerror(errno));
        return false;
    }
    for (rewind(all->to); fgets(line, sizeof line, all->to); first = false) {
        ended = strchr(line, '\n') != NULL;
        if (!first)
            take_line(all, line);
        else if (strncmp(line, head, strlen(head)) != 0) {
            snprintf(why, room,
                     "%s: has rounds of another machine or another build of tutti, which do not "
                     "compare; name another file, or remove it", path);
            rounds_close(all);
            return false;
        }
    }
    fseek(all->to, 0, SEEK_END);             /* between reading and writing */
    fprintf(all->to, "%s%s%s", ended ? "" : "\n", first ? head : "", first ? "\n" : "");
    fflush(all->to);
    return true;
}

bool rounds_version(struct rounds *all, enum versus_system system, const char *version)
{
    char *have = all->version[system];
    if (*have)
        return !strcmp(have, version);
    snprintf(have, VERSION_BYTES, "%s", version);
    if (all->to)
        fprintf(all->to, "{\"system\": \"%s\", \"version\": \"%s\"}\n", versus_key[system], have);
    return true;
}

void rounds_add(struct rounds *all, const struct round *r)
{
    char line[ROUND_BYTES];
    keep(all, r);
    if (!all->to)
        return;
    round_write(r, line);
    fputs(line, all->to);
    fflush(all->to);
}

void rounds_leave_out(struct rounds *all, const struct left_out *l)
{
    if (all->left_count == LEFT_OUT_MOST)
        return;
    all->left[all->left_count++] = *l;
    if (all->to)
        fprintf(all->to,
                "{\"left_out\": \"%s\", \"operation\": \"%s\", \"ranks\": %d, \"from_bytes\": %zu, "
                "\"ns\": %.6g, \"tutti_ns\": %.6g}\n",
                versus_key[l->system], operations[l->from.op].name, l->from.ranks, l->from.bytes,
                l->ns, l->tutti_ns);
}

const struct left_out *rounds_left_out(const struct rounds *all, const struct point *p,
                                       enum versus_system system)
{
    for (int i = 0; i < all->left_count; i++) {
        const struct left_out *l = &all->left[i];
        if (l->system == system && l->from.op == p->op && l->from.ranks == p->ranks
            && l->from.bytes <= p->bytes)
            return l;
    }
    return NULL;
}

void rounds_close(struct rounds *all)
{
    if (all->to)
        fclose(all->to);
    free(all->at);
    *all = (struct rounds){ 0 };
}

static bool of_point(const struct round *r, const struct point *p)
{
    return r->point.op == p->op && r->point.ranks == p->ranks && r->point.bytes == p->bytes;
}

size_t rounds_count(const struct rounds *all, const struct point *p, size_t *dropped)
{
    size_t n = 0, lost = 0;
    for (size_t i = 0; i < all->n; i++)
        if (of_point(&all->at[i], p)) {
            bool changed = line_state(all->at[i].before, all->at[i].after) == LINE_CHANGED;
            lost += changed;
            n += !changed;
        }
    if (dropped)
        *dropped = lost;
    return n;
}

static struct series picked(const struct rounds *all, const struct point *p, enum line_state state,
                            enum versus_system system, double over(const struct round *r))
{
    struct series s = { 0 };
    for (size_t i = 0; i < all->n; i++) {
        const struct round *r = &all->at[i];
        if (of_point(r, p) && line_state(r->before, r->after) == state && r->ns[system] > 0
            && over(r) > 0)
            series_add(&s, r->ns[system] / over(r));
    }
    return s;
}

static double one(const struct round *r)
{
    (void)r;
    return 1;
}

static double its_tutti(const struct round *r) { return r->ns[VERSUS_TUTTI]; }

static double its_floor(const struct round *r)
{
    double least = 0;
    for (int i = VERSUS_FLOOR; i < VERSUS_SYSTEMS; i++)
        if (r->ns[i] > 0 && (least <= 0 || r->ns[i] < least))
            least = r->ns[i];
    return least;
}

struct series rounds_ns(const struct rounds *all, const struct point *p, enum line_state state,
                        enum versus_system system)
{
    return picked(all, p, state, system, one);
}

struct series rounds_ratios(const struct rounds *all, const struct point *p, enum line_state state,
                            enum versus_system system)
{
    return picked(all, p, state, system, its_tutti);
}

struct series rounds_over_floor(const struct rounds *all, const struct point *p,
                                enum line_state state, enum versus_system system)
{
    return picked(all, p, state, system, its_floor);
}
