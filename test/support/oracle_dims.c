/* The dimensions of cases: the values of each kind, the elements of a size, which values can go
 * together, and a case as text. */
#include "support/oracle.h"

#include "base/text.h"
#include "coll/pipeline.h"
#include "coll/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int values_all[DIMS] = {
    [DIM_RANKS] = ORACLE_RANKS, [DIM_RULE] = RULES, [DIM_GATE] = 2, [DIM_TYPE] = ORACLE_TYPES,
    [DIM_OP] = OPS, [DIM_PLACE] = PLACES, [DIM_SIZE] = SIZES, [DIM_SEND_AT] = 3, [DIM_RECV_AT] = 3,
    [DIM_ROOT] = ROOTS, [DIM_PATTERN] = PATTERNS, [DIM_MODES] = MODES, [DIM_MEMORY] = MEMORIES,
    [DIM_LIST] = LISTS, [DIM_HOW] = HOWS, [DIM_ROAD] = ORACLE_ROADS, [DIM_DEVICES] = ORACLE_DEVICES,
    [DIM_WHERE] = WHERES, [DIM_SOURCE] = SOURCES, [DIM_STREAM] = STREAMS
};

enum {
    DEVICES = 1 << DIM_DEVICES | 1 << DIM_WHERE | 1 << DIM_SOURCE | 1 << DIM_STREAM,
    WORLD = 1 << DIM_RANKS | 1 << DIM_RULE | 1 << DIM_GATE | 1 << DIM_HOW | 1 << DIM_ROAD,
    ONE = WORLD | DEVICES | 1 << DIM_TYPE | 1 << DIM_SIZE | 1 << DIM_RECV_AT | 1 << DIM_PATTERN | 1
        << DIM_MEMORY,
    TWO = ONE | 1 << DIM_SEND_AT | 1 << DIM_PLACE,
    FOLD = TWO | 1 << DIM_OP | 1 << DIM_MODES,
    ROOT = 1 << DIM_ROOT,
    LIST = 1 << DIM_LIST
};

static const int dims_of[KIND_COUNT] = {
    [KIND_BARRIER] = WORLD, [KIND_BROADCAST] = ONE | ROOT, [KIND_REDUCE] = FOLD | ROOT,
    [KIND_ALL_REDUCE] = FOLD, [KIND_ALL_REDUCE_MANY] = FOLD | LIST, [KIND_REDUCE_SCATTER] = FOLD,
    [KIND_ALL_GATHER] = TWO, [KIND_GATHER] = TWO | ROOT, [KIND_SCATTER] = TWO | ROOT,
    [KIND_ALL_TO_ALL] = TWO, [KIND_SCAN] = FOLD, [KIND_EXSCAN] = FOLD,
    [KIND_REDUCE_SCATTER_V] = FOLD | LIST, [KIND_ALL_GATHER_V] = TWO | LIST,
    [KIND_GATHER_V] = TWO | LIST | ROOT, [KIND_SCATTER_V] = TWO | LIST | ROOT,
    [KIND_ALL_TO_ALL_V] = TWO | LIST,
};

int oracle_values_of(enum kind kind, int dim, const struct oracle_space *space)
{
    if (space->devices ? dim == DIM_GATE : (DEVICES | 1 << DIM_ROAD) >> dim & 1)
        return 1;
    if (dim == DIM_SIZE && !space->devices)
        return dims_of[kind] >> dim & 1 ? HOST_SIZES : 1;
#if !defined(__x86_64__)
    if (dim == DIM_MODES)   /* only there can a program start with flush-to-zero */
        return 1;
#endif
    return dims_of[kind] >> dim & 1 ? values_all[dim] : 1;
}

int oracle_ranks(const struct oracle_case *c) { return c->v[DIM_RANKS] + 1; }

int oracle_root(const struct oracle_case *c)
{
    int n = oracle_ranks(c);
    return c->v[DIM_ROOT] == ROOT_FIRST ? 0 : c->v[DIM_ROOT] == ROOT_LAST ? n - 1 : n / 2;
}

bool oracle_each(enum kind kind)
{
    return kind == KIND_REDUCE_SCATTER || kind == KIND_REDUCE_SCATTER_V || kind == KIND_SCATTER
        || kind == KIND_SCATTER_V || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

bool oracle_folds(enum kind kind) { return dims_of[kind] >> DIM_OP & 1; }
bool oracle_uneven(enum kind kind) { return dims_of[kind] >> DIM_LIST & 1; }

static int many(const struct oracle_case *c) { return 1 + c->v[DIM_RANKS] % 5; }

/* The number of blocks that share the bytes of a size. */
static size_t blocks_of(const struct oracle_case *c)
{
    return c->kind == KIND_ALL_REDUCE_MANY ? (size_t)many(c)
        : oracle_each(c->kind) ? (size_t)oracle_ranks(c)
        : 1;
}

/* The span of the worlds that will run this: TUTTI_SPAN_BYTES, or more than any pipeline needs. */
static uint64_t oracle_span_bytes(void)
{
    uint64_t bytes = UINT64_C(1) << 40;
    const char *asked = getenv("TUTTI_SPAN_BYTES");
    return asked && text_parse_bytes(asked, &bytes) == 0 ? bytes : UINT64_C(1) << 40;
}

static size_t eager_most(enum kind kind)
{
    return kind == KIND_ALL_TO_ALL || kind == KIND_SCATTER || kind == KIND_REDUCE_SCATTER
        ? EAGER_EACH_BYTES
        : EAGER_BYTES;
}

size_t oracle_count(const struct oracle_case *c)
{
    static const struct { size_t few; int more; } sizes[SIZES] = {
        [SIZE_0] = { 0, 0 }, [SIZE_1] = { 1, 0 }, [SIZE_2] = { 2, 0 }, [SIZE_3] = { 3, 0 },
        [SIZE_7] = { 7, 0 }, [SIZE_333] = { 333, 0 }, [SIZE_LINE_LESS] = { 0, -1 },
        [SIZE_LINE_MORE] = { 0, 1 }, [SIZE_32K_LESS] = { 0, -1 }, [SIZE_32K_MORE] = { 0, 1 },
        [SIZE_64K_LESS] = { 0, -1 }, [SIZE_64K_MORE] = { 0, 1 }, [SIZE_PIECE_LESS] = { 0, -1 },
        [SIZE_PIECE_MORE] = { 0, 1 }, [SIZE_ROUND_LESS] = { 0, -1 }, [SIZE_ROUND_MORE] = { 0, 1 },
        [SIZE_RING_LESS] = { 0, -1 }, [SIZE_RING_MORE] = { 0, 1 },
        [SIZE_DEVICE_PIECE_LESS] = { 0, -1 }, [SIZE_DEVICE_PIECE_MORE] = { 0, 1 },
        [SIZE_DEVICE_ROUND_LESS] = { 0, -1 }, [SIZE_DEVICE_ROUND_MORE] = { 0, 1 },
        [SIZE_DEVICE_RING_LESS] = { 0, -1 }, [SIZE_DEVICE_RING_MORE] = { 0, 1 },
    };
    size_t ranks = (size_t)oracle_ranks(c), blocks = blocks_of(c), bytes = 0;
    bool device = c->v[DIM_SIZE] >= SIZE_DEVICE_PIECE_LESS;
    size_t slot = device ? pipeline_device_slot_bytes((uint32_t)ranks, oracle_span_bytes())
                         : pipeline_slot_bytes((uint32_t)ranks),
           piece = slot / (ranks + 1);
    bool reduces = c->kind == KIND_REDUCE || c->kind == KIND_ALL_REDUCE
        || c->kind == KIND_ALL_REDUCE_MANY;
    size_t round = (reduces ? piece * ranks : slot) / blocks;
    if (c->kind == KIND_BARRIER)
        return 0;
    switch (c->v[DIM_SIZE]) {
    case SIZE_LINE_LESS: case SIZE_LINE: case SIZE_LINE_MORE: bytes = INLINE_BYTES / blocks; break;
    case SIZE_32K_LESS: case SIZE_32K: case SIZE_32K_MORE: bytes = 32768 / blocks; break;
    case SIZE_64K_LESS:
    case SIZE_64K:
    case SIZE_64K_MORE: bytes = eager_most(c->kind) / blocks; break;
    case SIZE_PIECE_LESS: case SIZE_PIECE: case SIZE_PIECE_MORE:
    case SIZE_DEVICE_PIECE_LESS:
    case SIZE_DEVICE_PIECE:
    case SIZE_DEVICE_PIECE_MORE: bytes = piece; break;
    case SIZE_ROUND_LESS: case SIZE_ROUND: case SIZE_ROUND_MORE:
    case SIZE_DEVICE_ROUND_LESS:
    case SIZE_DEVICE_ROUND:
    case SIZE_DEVICE_ROUND_MORE: bytes = round; break;
    case SIZE_RING_LESS: case SIZE_RING: case SIZE_RING_MORE:
    case SIZE_DEVICE_RING_LESS:
    case SIZE_DEVICE_RING:
    case SIZE_DEVICE_RING_MORE:
        bytes = round * (device ? PIPELINE_DEPTH : pipeline_depth((uint32_t)ranks));
        break;
    case SIZE_DEVICE_LARGE: bytes = round * (2 * PIPELINE_DEPTH + 1) + round / 3; break;
    case SIZE_ODD: bytes = 100003 / blocks; break;
    case SIZE_LARGE:
        bytes = 1500007 / blocks
            / (oracle_uneven(c->kind) || c->kind == KIND_ALL_GATHER || c->kind == KIND_GATHER
                   ? ranks
                   : 1);
        break;
    default: return sizes[c->v[DIM_SIZE]].few;
    }
    size_t count = bytes / oracle_width(c->v[DIM_TYPE]);
    return count || sizes[c->v[DIM_SIZE]].more > 0 ? count + (size_t)sizes[c->v[DIM_SIZE]].more : 0;
}

int oracle_buffers(const struct oracle_case *c)
{
    return c->v[DIM_LIST] == LIST_ZERO && c->salt % 2 ? 0 : many(c);
}

/* Count number i in a list of n counts, by the case's kind of list. */
static size_t listed(const struct oracle_case *c, int n, int i)
{
    uint64_t seed = c->salt ^ (uint64_t)(i + 1) * UINT64_C(0x2545f4914f6cdd1d);
    size_t base = oracle_count(c);
    bool one = i == (int)(c->salt / 7 % (uint64_t)n);
    switch (c->v[DIM_LIST]) {
    case LIST_EVEN: return base;
    case LIST_ZERO: return 0;
    case LIST_ONE: return one ? base : 0;
    case LIST_MOSTLY: return one ? base : base / 50;
    default: return oracle_any(&seed) % 3 ? (size_t)(oracle_any(&seed) % (base + 1)) : 0;
    }
}

size_t oracle_block(const struct oracle_case *c, int from, int to)
{
    int n = oracle_ranks(c);
    if (!oracle_uneven(c->kind))
        return oracle_count(c);
    if (c->kind == KIND_ALL_TO_ALL_V)
        return listed(c, n * n, from * n + to);
    return oracle_each(c->kind) ? listed(c, n, to) : listed(c, n, from);
}

/* NULL: the default */
static const char *const names[RULES] = { "inline", "eager", "pipelined", "direct", NULL };

/* True: this kind has an algorithm of this name. */
static bool has_rule(enum kind kind, int rule)
{
    return !names[rule] || kind == KIND_BARRIER || select_named(kind, names[rule]);
}

bool oracle_fits(const struct oracle_case *c, const struct oracle_space *space)
{
    const unsigned char *v = c->v;
    if (v[DIM_TYPE] != ORACLE_OPEN && v[DIM_OP] != ORACLE_OPEN
        && !oracle_allowed(v[DIM_TYPE], v[DIM_OP]))
        return false;
    if (v[DIM_RANKS] != ORACLE_OPEN
        && (oracle_ranks(c) < space->ranks_least || oracle_ranks(c) > space->ranks_most))
        return false;
    if (v[DIM_RULE] != ORACLE_OPEN && !has_rule(c->kind, v[DIM_RULE]))
        return false;
    /* these rules use no road */
    if (v[DIM_RULE] < RULE_RING && v[DIM_ROAD] != ORACLE_OPEN && v[DIM_ROAD] != 0)
        return false;
    if (v[DIM_RULE] == ORACLE_OPEN || v[DIM_SIZE] == ORACLE_OPEN || v[DIM_TYPE] == ORACLE_OPEN
        || v[DIM_RANKS] == ORACLE_OPEN)
        return true;
    size_t bytes = oracle_count(c) * oracle_width(v[DIM_TYPE]) * blocks_of(c), most = SIZE_MAX;
    if (v[DIM_RULE] == RULE_LINE)
        most = v[DIM_OP] == TUTTI_PREMUL_SUM ? INLINE_BYTES - FACTOR_BYTES : INLINE_BYTES;
    if (v[DIM_RULE] == RULE_EAGER)
        most = eager_most(c->kind);
    return bytes <= most && bytes <= space->bytes_most;
}

const char *oracle_rules(const struct oracle_case *c, char room[1024])
{
    static const char *const roads[ORACLE_ROADS] = { "pinned", "leader", "peers", NULL };
    int rule = c->v[DIM_RULE], gate = c->v[DIM_GATE], road = c->v[DIM_ROAD];
    int n = snprintf(room, 1024, "barrier:-inf=%s", gate ? "central" : "flags");
    for (enum kind kind = KIND_BROADCAST; names[rule] && kind <= KIND_ALL_TO_ALL_V; kind++)
        if (has_rule(kind, rule))
            n += snprintf(room + n, 1024 - (size_t)n, ";%s:-inf=%s", kind_name(kind), names[rule]);
    if (roads[road])
        snprintf(room + n, 1024 - (size_t)n, ";device:-inf=%s", roads[road]);
    return room;
}

void oracle_describe(const struct oracle_case *c, struct text *t)
{
    static const char *const patterns[] = { "any", "near 1", "special", "denormal" };
    static const char *const modes[] = { "", ", rank 0 flushes to zero",
                                         ", the last rank flushes to zero" };
    static const char *const memories[] = {
        "private", "in the arena", "of some ranks in the arena",
        "send in the arena", "recv in the arena"
    };
    static const char *const lists[] = { "even", "any", "all zero", "one", "mostly one" };
    static const char *const roads[] = { "pinned", "leader", "peers", "by default" };
    static const char *const wheres[] = {
        "on the device", "send on the device", "recv on the device",
        "of some ranks on the device", "anywhere"
    };
    static const char *const sources[] = {
        "allocated", "tutti's", "registered", "inside another", "shareable", "mapped"
    };
    static const char *const streams[] = {
        "nothing", "the NULL stream", "a stream before NULL", "a blocking stream", "a stream"
    };
    int op = c->v[DIM_OP];
    size_t count = oracle_count(c);
    fingerprint_add(t,
                    fingerprint_make(c->kind, c->v[DIM_TYPE],
                                     (tutti_op)(op > TUTTI_PREMUL_SUM ? TUTTI_OP_USER : op),
                                     oracle_root(c), count),
                    count);
    text_add(t, ", %d ranks, %s, gate %s, %s, offsets %d %d, data %s%s, %s, op %d, list %s, %s",
             oracle_ranks(c), c->v[DIM_RULE] == RULE_DEFAULT ? "default" : names[c->v[DIM_RULE]],
             c->v[DIM_GATE] ? "central" : "flags",
             c->v[DIM_PLACE] == PLACE_IN_PLACE ? "in place" : "apart", c->v[DIM_SEND_AT],
             c->v[DIM_RECV_AT], patterns[c->v[DIM_PATTERN]], modes[c->v[DIM_MODES]],
             memories[c->v[DIM_MEMORY]], op, lists[c->v[DIM_LIST]],
             c->v[DIM_HOW] == HOW_WORK ? "by work" : "blocking");
    text_add(t, "; road %s, %d devices, %s, %s, behind %s", roads[c->v[DIM_ROAD]],
             c->v[DIM_DEVICES] + 1, wheres[c->v[DIM_WHERE]], sources[c->v[DIM_SOURCE]],
             streams[c->v[DIM_STREAM]]);
}

uint64_t oracle_any(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t oracle_seed(void)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given ? strtoull(given, NULL, 0)
                          : (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    printf("seed: TUTTI_TEST_SEED=%llu runs this again\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

bool oracle_prove(void) { return getenv("TUTTI_PROVE") != NULL; }
