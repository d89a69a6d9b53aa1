/* Files as PyTorch's flight recorder writes them, for torchfrtrace (torch 2.13): it pairs the calls
 * of all ranks by their sequence in a group, and says where one is missing or differs.
 *
 * It ends on a name that it does not know. So operations that it has none for are left out, with
 * a count, and the sequence is that of those that are left. It begins at the oldest operation that
 * all journals of the comm still have. A rank that has called nothing has a file without entries.
 * It compares states as well: an operation has one on all ranks, since a copy of a job that runs is
 * of a moment when some have ended it. */
#include "cli/pickle.h"
#include "cli/ps.h"
#include "cli/trace.h"

#include "base/error.h"
#include "fold/fold.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TEXT_ROOM = 1024 };

/* An operation of some rank that is written: its comm, number, and place in the comm's sequence. */
struct fr {
    const struct trace *trace;
    uint64_t wall_ns;                 /* since 1970, when trace->held->now was */
    size_t written, left_out[KIND_COUNT];
};

/* NULL: torchfrtrace has no such operation. */
static const char *fr_name(enum kind kind)
{
    static const char *const names[KIND_COUNT] = {
        [KIND_BARRIER] = "barrier", [KIND_BROADCAST] = "broadcast", [KIND_REDUCE] = "reduce",
        [KIND_ALL_REDUCE] = "all_reduce", [KIND_ALL_REDUCE_MANY] = "allreduce_coalesced",
        [KIND_REDUCE_SCATTER] = "reduce_scatter", [KIND_ALL_GATHER] = "all_gather",
        [KIND_GATHER] = "gather", [KIND_SCATTER] = "scatter", [KIND_ALL_TO_ALL] = "all_to_all",
        [KIND_REDUCE_SCATTER_V] = "reduce_scatter_v", [KIND_ALL_GATHER_V] = "all_gather_v",
        [KIND_GATHER_V] = "gather", [KIND_SCATTER_V] = "scatter",
        [KIND_ALL_TO_ALL_V] = "all_to_all", [KIND_SPLIT] = "split", [KIND_SPLIT_END] = "split"
    };
    return kind < KIND_COUNT ? names[kind] : NULL;
}

static const char *fr_type(tutti_type type)
{
    static const char *const names[] = {
        [TUTTI_I8] = "Char", [TUTTI_U8] = "Byte", [TUTTI_I16] = "Short", [TUTTI_U16] = "UInt16",
        [TUTTI_I32] = "Int", [TUTTI_U32] = "UInt32", [TUTTI_I64] = "Long",
        [TUTTI_U64] = "UInt64", [TUTTI_F16] = "Half", [TUTTI_BF16] = "BFloat16",
        [TUTTI_F32] = "Float", [TUTTI_F64] = "Double", [TUTTI_BOOL] = "Bool",
        [TUTTI_C64] = "ComplexFloat", [TUTTI_C128] = "ComplexDouble",
        [TUTTI_F8E4M3] = "Float8_e4m3fn", [TUTTI_F8E5M2] = "Float8_e5m2"
    };
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "Byte";
}

/* ---- sizes ---- */

struct sizes { uint64_t in, out; };

/* Of how many elements. Of operations that have a list of counts we know only whether the lists are
 * alike: then it is 1, or another number for another list. */
static struct sizes fr_sizes(const struct trace_meeting *m, const struct history *h, uint32_t p)
{
    const struct history_op *op = m->at[p];
    enum kind kind = fingerprint_kind(op->descriptor);
    uint64_t n = op->count % (UINT64_C(1) << 40);
    if (!kind_data(kind)) {
        n = 1;
        for (uint32_t q = 0; q < p && kind != KIND_BARRIER && kind != KIND_SPLIT; q++)
            if (m->at[q] && trace_alike(m->at[q], op))
                break;
            else
                n += m->at[q] != NULL;
    }
    switch (kind) {
    case KIND_ALL_GATHER:
    case KIND_GATHER:         return (struct sizes){ n, n * h->size };
    case KIND_REDUCE_SCATTER:
    case KIND_SCATTER:        return (struct sizes){ n * h->size, n };
    case KIND_ALL_TO_ALL:     return (struct sizes){ n * h->size, n * h->size };
    default:                  return (struct sizes){ n, n };
    }
}

static void put_size(FILE *out, const char *name, uint64_t n)
{
    pickle_text(out, name);
    pickle_list(out);
    pickle_list(out);
    pickle_int(out, (int64_t)n);
    pickle_list_end(out);
    pickle_list_end(out);
}

static void put_type(FILE *out, const char *name, const char *type)
{
    pickle_text(out, name);
    pickle_list(out);
    pickle_text(out, type);
    pickle_list_end(out);
}

static void put_int(FILE *out, const char *name, int64_t n)
{
    pickle_text(out, name);
    pickle_int(out, n);
}

static void put_text(FILE *out, const char *name, const char *s)
{
    pickle_text(out, name);
    pickle_text(out, s);
}

/* ---- one entry ---- */

static void put_group(FILE *out, const struct history *h)
{
    char name[32], words[48];
    struct text t = TEXT_IN(words);
    snprintf(name, sizeof name, "%llu", h->parent ? (unsigned long long)h->birth : 0);
    text_clear(&t);
    trace_add_comm(&t, h);
    pickle_text(out, name);
    pickle_text(out, h->parent ? words : "default_pg");
    pickle_pair(out);
}

static void put_time(FILE *out, const struct fr *fr, const char *name, uint64_t ns)
{
    pickle_text(out, name);
    if (ns)
        pickle_int(out, (int64_t)(fr->wall_ns - (fr->trace->held->now.ns - ns)));
    else
        pickle_none(out);
}

/* "train.py:41" as a frame. */
static void put_frame(FILE *out, const struct trace *t, const struct history_op *op)
{
    char room[STATE_SITE];
    struct text site = TEXT_IN(room);
    int64_t line = 0;
    text_clear(&site);
    trace_add_site(&site, t, op);
    char *colon = strrchr(room, ':');
    if (colon && text_parse_int(colon + 1, 0, INT32_MAX, &line) == 0)
        *colon = 0;
    pickle_text(out, "frames");
    pickle_list(out);
    pickle_dict(out);
    put_text(out, "name", "<call>");
    put_text(out, "filename", room);
    put_int(out, "line", line);
    pickle_dict_end(out);
    pickle_list_end(out);
}

static void put_entry(FILE *out, const struct fr *fr, const struct history *h,
                      const struct trace_meeting *m, uint32_t p, int64_t sequence)
{
    const struct history_op *op = m->at[p];
    const char *name = fr_name(fingerprint_kind(op->descriptor));
    const char *type = kind_data(fingerprint_kind(op->descriptor))
        ? fr_type((tutti_type)fingerprint_type(op->descriptor)) : "Byte";
    struct sizes sizes = fr_sizes(m, h, p);
    bool over = m->ended == h->size && !m->failed;
    char profiling[64];
    /* beside an operation that it knows: some other one */
    snprintf(profiling, sizeof profiling, "gloo:%s", name ? name : "new_window");
    pickle_dict(out);
    put_int(out, "record_id", sequence);
    put_int(out, "pg_id", (int64_t)(h->birth & INT32_MAX));
    pickle_text(out, "process_group");
    put_group(out, h);
    put_int(out, "collective_seq_id", sequence);
    put_int(out, "p2p_seq_id", 0);
    put_int(out, "op_id", sequence);
    put_text(out, "profiling_name", profiling);
    put_time(out, fr, "time_created_ns", op->began_ns);
    put_size(out, "input_sizes", sizes.in);
    put_type(out, "input_dtypes", type);
    put_size(out, "output_sizes", sizes.out);
    put_type(out, "output_dtypes", type);
    put_text(out, "state", over ? "completed" : "started");
    put_time(out, fr, "time_discovered_started_ns", op->arrived_ns);
    put_time(out, fr, "time_discovered_completed_ns", over ? op->ended_ns : 0);
    pickle_text(out, "retired");
    pickle_bool(out, over);
    put_int(out, "timeout_ms", 0);
    pickle_text(out, "is_p2p");
    pickle_bool(out, 0);
    put_frame(out, fr->trace, op);
    pickle_dict_end(out);
}

/* ---- one rank ---- */

/* The oldest operation that all journals of the comm have, if they began with it. */
static uint64_t fr_from(const struct history *h)
{
    uint64_t from = 0;
    for (uint32_t p = 0; p < h->size; p++) {
        const struct history_rank *rank = &h->rank[p];
        uint32_t k = 0;
        while (k < rank->n && !rank->op[k].number)
            k++;
        if (rank->begun > rank->n && k < rank->n && rank->op[k].number > from)
            from = rank->op[k].number;
    }
    return from;
}

/* Is it an operation for torchfrtrace: does it know any of its calls? */
static bool fr_known(const struct trace_meeting *m, uint32_t size)
{
    for (uint32_t p = 0; p < size; p++)
        if (m->at[p] && fr_name(fingerprint_kind(m->at[p]->descriptor)))
            return true;
    return false;
}

static void put_comm(FILE *out, struct fr *fr, const struct history *h, uint32_t p,
                     const struct history_op **at)
{
    struct trace_meeting m;
    int64_t sequence = 0;
    uint64_t from, to, oldest = fr_from(h);
    trace_numbers(h, &from, &to);
    from = from > oldest ? from : oldest;
    /* damaged journals may have any numbers */
    to = to >= from && to - from > h->n ? from + h->n : to;
    for (uint64_t number = from; from && number <= to && from <= to; number++) {
        if (!trace_meet(&m, h, number, at) || !fr_known(&m, h->size))
            continue;
        sequence++;
        if (!m.at[p])
            continue;
        put_entry(out, fr, h, &m, p, sequence);
        fr->written++;
    }
}

static void put_config(FILE *out, const struct trace *t, uint32_t rank)
{
    pickle_text(out, "pg_config");
    pickle_dict(out);
    for (uint32_t i = 0; i < t->comms; i++) {
        const struct history *h = &t->comm[i];
        char name[32], words[48], *ranks = malloc(h->size * 6 + 8);
        struct text desc = TEXT_IN(words), list = { ranks, h->size * 6 + 8, 0 };
        bool mine = false;
        if (!ranks)
            continue;
        text_clear(&list);
        text_add(&list, "[");
        for (uint32_t p = 0; p < h->size; p++) {
            mine |= h->rank[p].rank == rank;
            text_add(&list, "%s%d", p ? ", " : "", (int)h->rank[p].rank);
        }
        text_add(&list, "]");
        snprintf(name, sizeof name, "%llu", h->parent ? (unsigned long long)h->birth : 0);
        text_clear(&desc);
        trace_add_comm(&desc, h);
        if (mine) {
            pickle_text(out, name);
            pickle_dict(out);
            put_text(out, "name", name);
            put_text(out, "desc", h->parent ? words : "default_pg");
            put_text(out, "ranks", ranks);
            pickle_dict_end(out);
        }
        free(ranks);
    }
    pickle_dict_end(out);
}

static void put_rank(FILE *out, struct fr *fr, uint32_t rank, const struct history_op **at)
{
    const struct trace *t = fr->trace;
    pickle_begin(out);
    pickle_dict(out);
    put_text(out, "version", "2.10");
    put_config(out, t, rank);
    pickle_text(out, "pg_status");
    pickle_dict(out);
    pickle_dict_end(out);
    pickle_text(out, "nccl_comm_state");
    pickle_dict(out);
    pickle_dict_end(out);
    pickle_text(out, "entries");
    pickle_list(out);
    for (uint32_t i = 0; i < t->comms; i++)
        for (uint32_t p = 0; p < t->comm[i].size; p++)
            if (t->comm[i].rank[p].rank == rank)
                put_comm(out, fr, &t->comm[i], p, at);
    pickle_list_end(out);
    pickle_dict_end(out);
    pickle_end(out);
}

/* ---- the folder ---- */

static int failed(const char *path, int error)
{
    fprintf(stderr, "tutti trace: %.300s: %s\n", path, error_system(error));
    return LOOK_FAILED;
}

static int make_folder(const char *folder)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return failed(folder, -errno);
    DIR *d = opendir(folder);
    if (!d)
        return failed(folder, -errno);
    bool empty = true;
    for (struct dirent *e; (e = readdir(d));)
        empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    closedir(d);
    return empty ? 0 : failed(folder, -ENOTEMPTY);
}

static void say_left_out(const struct fr *fr)
{
    char room[TEXT_ROOM];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (fr->left_out[kind])
            text_add(&t, "%s%zu %s", t.used ? ", " : "", fr->left_out[kind],
                     kind_name((enum kind)kind));
    if (t.used)
        printf("left out, because torchfrtrace does not know them: %s\n", room);
}

static void count(struct fr *fr)
{
    const struct trace *t = fr->trace;
    for (size_t i = 0; i < t->n; i++) {
        enum kind kind = fingerprint_kind(t->op[i].op->descriptor);
        fr->left_out[kind] += !fr_name(kind);
    }
}

int trace_fr(const char *folder, const struct trace *t)
{
    struct fr fr = { .trace = t };
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    fr.wall_ns = t->held->box.moment ? t->held->box.moment->wall_ns
        : (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
    int status = make_folder(folder);
    const struct history_op **at = calloc(RANKS_MAX, sizeof *at);
    for (uint32_t r = 0; r < t->states.size && !status && at; r++) {
        char path[4096];
        snprintf(path, sizeof path, "%.4000s/rank_%u", folder, r);
        FILE *out = fopen(path, "we");
        if (!out)
            status = failed(path, -errno);
        else {
            put_rank(out, &fr, r, at);
            int error = ferror(out) ? EIO : 0;
            if (fclose(out) != 0 || error)
                status = failed(path, error ? error : errno);
        }
    }
    free(at);
    if (status)
        return status;
    count(&fr);
    printf("%u files in %s, of %zu calls; look: torchfrtrace %s\n", t->states.size, folder,
           fr.written, folder);
    say_left_out(&fr);
    return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
}
