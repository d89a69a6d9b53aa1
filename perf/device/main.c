/* How fast collectives on device memory are: ranks on one GPU, by every road, against the floors
 * that the same run measures, and against what else there is. This process touches no GPU: it forks
 * all that do. */
#include "device/device.h"

#include "base/text.h"
#include "cli/option.h"
#include "harness/progress.h"
#include "harness/stamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SKIP = 77, USAGE = 2 };
#define SMALLEST ((size_t)1 << 10)
#define LARGEST ((size_t)1 << 30)

const char *const doing_names[DOINGS] = { "all_reduce", "broadcast", "all_gather" };
const char *const system_names[SYSTEMS] = {
    "pinned", "leader", "peers", "gloo", "nccl", "nccl+switch"
};

const char *const memory_names[MEMORIES] = { "kept", "plain", "vmm" };

static const char help[] =
    "usage: device [options]\n"
    "\n"
    "How fast are collectives on device memory? Ranks on the first GPU, f32 sums,\n"
    "by every road, beside torch's gloo and NCCL where they are found; and what PCIe,\n"
    "the GPU's memory and its driver give at best, measured in the same run.\n"
    "\n"
    "  --seconds S      for everything; default 420\n"
    "  --ranks LIST     numbers of ranks, 2 to 16; default 2,4,8\n"
    "  --most BYTES     largest result of a rank; default 1G; the smallest is 1K\n"
    "  --memory WHICH   of our buffers: kept, of tutti_cuda_alloc (default); plain, of\n"
    "                   cuMemAlloc; vmm, of cuMemCreate, as PyTorch's expandable segments\n"
    "  --busy MS        each rank has kernels of its own running, so long each\n"
    "  --out FILE       all figures, a JSON object a line; default device.jsonl\n"
    "  --quick          seconds, small sizes; shows that it works, the figures mean nothing\n"
    "  -h, --help       this\n"
    "\n"
    "Exit status: 0; 1 if a result was wrong or nothing could be measured; 77 if there\n"
    "is no GPU; 2 for a wrong command line.\n";

static const char *called = "device";

static _Noreturn void mistake(const char *what, const char *value)
{
    option_refuse(called, "%s, not '%.60s'", what, value);
    exit(USAGE);
}

/* ---- options --------------------------------------------------------------------------------- */

static void take_ranks(struct options *o, const char *list)
{
    char copy[64], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    o->lists = 0;
    for (char *s = strtok_r(copy, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        int64_t n;
        if (text_parse_int(s, 2, RANKS_MOST, &n) < 0 || o->lists == LISTS_MOST)
            mistake("--ranks wants up to 4 numbers from 2 to 16", list);
        o->ranks[o->lists++] = (int)n;
    }
    if (!o->lists)
        mistake("--ranks wants up to 4 numbers from 2 to 16", list);
}

static void take_sizes(struct options *o, uint64_t most)
{
    o->size_count = 0;
    for (size_t bytes = SMALLEST; bytes <= most && bytes <= LARGEST; bytes *= 4)
        o->sizes[o->size_count++] = bytes;
}

static void take_memory(struct options *o, const char *word)
{
    for (int i = 0; i < MEMORIES; i++)
        if (!strcmp(word, memory_names[i])) {
            o->memory = (enum memory)i;
            return;
        }
    mistake("--memory wants kept, plain or vmm", word);
}

static void take_options(struct options *o, int argc, char **argv)
{
    static const struct option all[] = {
        { "seconds", required_argument, NULL, 's' },
        { "ranks", required_argument, NULL, 'r' }, { "most", required_argument, NULL, 'm' },
        { "out", required_argument, NULL, 'o' }, { "quick", no_argument, NULL, 'q' },
        { "memory", required_argument, NULL, 'k' }, { "busy", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    uint64_t most = LARGEST;
    const char *ranks = "2,4,8";
    char *end;
    int option;
    *o = (struct options){ .seconds = 420, .out = "device.jsonl" };
    called = !strncmp(argv[0], "tutti ", 6) ? argv[0] : called;
    const struct option_words words = { called, ":hn:", all, argc, argv };
    while ((option = option_next(&words)) != OPTION_END)
        switch (option) {
        case 's':
            o->seconds = strtod(optarg, &end);
            if (*end || !(o->seconds > 0 && o->seconds < 1e6))
                mistake("--seconds wants a number above 0", optarg);
            break;
        case 'n': case 'r': ranks = optarg; break;
        case 'm':
            if (text_parse_bytes(optarg, &most) < 0 || most < SMALLEST)
                mistake("--most wants 1K or more, as 64M", optarg);
            break;
        case 'o': o->out = optarg; break;
        case 'q': o->quick = true; break;
        case 'k': take_memory(o, optarg); break;
        case 'b':
            o->busy_ms = strtod(optarg, &end);
            if (*end || !(o->busy_ms > 0 && o->busy_ms <= 1000))
                mistake("--busy wants milliseconds, above 0, up to 1000", optarg);
            break;
        case 'h': fputs(help, stdout); exit(0);
        default: exit(USAGE);
        }
    if (optind < argc)
        mistake("it takes no words", argv[optind]);
    take_ranks(o, ranks);
    take_sizes(o, o->quick && most > 64 << 10 ? 64 << 10 : most);
    if (o->quick)
        o->seconds = o->seconds > 4 ? 4 : o->seconds;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* In the order in which they are measured; the sizes of a job's last operation reach
 * the largest. */
static void plan_job(struct board *b, const struct options *o, enum system system, int ranks)
{
    int kinds = system == SYSTEM_PINNED || system == SYSTEM_LEADER ? DOINGS : 1;
    for (int k = kinds - 1; k >= 0; k--)
        for (int i = 0; i < o->size_count && b->points < POINTS_MOST; i++)
            b->point[b->points++] = (struct point){
                .kind = (enum doing)k, .system = system, .ranks = ranks, .bytes = o->sizes[i]
            };
}

/* What is not ours comes last: it may hang, and then costs only its like their time. */
static void plan(struct board *b, const struct options *o)
{
    for (int l = 0; l < o->lists; l++)
        for (int s = 0; s <= SYSTEM_PEERS; s++)
            plan_job(b, o, (enum system)s, o->ranks[l]);
    for (int s = SYSTEM_PEERS + 1; s < SYSTEMS; s++)
        for (int l = 0; l < o->lists; l++)
            plan_job(b, o, (enum system)s, o->ranks[l]);
}

static int job_end(const struct board *b, int first)
{
    int end = first;
    while (end < b->points && b->point[end].system == b->point[first].system
           && b->point[end].ranks == b->point[first].ranks)
        end++;
    return end;
}

static void show(double share, const char *system, int ranks)
{
    if (isatty(STDERR_FILENO))
        progress_show(share, "%s, %d ranks", system, ranks);
    else
        fprintf(stderr, "device: %3.0f %%  %s, %d ranks\n", share * 100, system, ranks);
}

/* What a job leaves of its time, the later ones have. */
static void measure(struct board *b, const struct options *o)
{
    for (int first = 0, end; first < b->points; first = end) {
        end = job_end(b, first);
        const struct point *p = &b->point[first];
        double left = o->seconds - stamp_seconds();
        struct part part = {
            .board = b, .first = first, .end = end, .ranks = p->ranks, .quick = o->quick,
            .memory = o->memory, .busy_ms = o->busy_ms
        };
        part.ns = 1e9 * left * (end - first) / (b->points - first);
        show((double)first / b->points, system_names[p->system], p->ranks);
        if (left < 0.5 && !o->quick)
            part_refuse(&part, "the time was up");
        else if (p->system == SYSTEM_GLOO)
            gloo_measure(&part);
        else if (p->system == SYSTEM_NCCL || p->system == SYSTEM_NCCL_SWITCH)
            nccl_measure(&part);
        else
            roads_measure(&part);
    }
    progress_clear();
}

int main(int argc, char **argv)
{
    struct options o;
    take_options(&o, argc, argv);
    stamp_calibrate();
    struct board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                           0);
    if (b == MAP_FAILED) {
        fprintf(stderr, "device: no memory\n");
        return 1;
    }
    show(0, "floors", 1);
    if (floors_measure(&b->floors, o.quick) < 0) {
        progress_clear();
        fprintf(stderr, "device: not measured: %s\n", b->floors.why);
        return SKIP;
    }
    plan(b, &o);
    measure(b, &o);
    write_table(b, &o);
    return write_file(b, &o);
}
