/* tutti doctor --gpu: the second process. Each GPU's memory is read by each GPU, by a process that
 * does not own it, as ranks read their peers': by a copy engine and by a kernel, compared with what
 * was written, and timed. Cost: 16 MiB on each GPU; a context, a kernel and 8 MiB for each reader;
 * some milliseconds a pair. */
#include "cli/doctor.h"
#include "cli/json.h"

#include "base/clock.h"
#include "base/text.h"
#include "gpu/topology.h"
#include "os/cpu.h"
#include "os/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair { bool told; enum doctor_pair verdict; double gb_s; char words[DOCTOR_WORDS]; };

struct pairs {
    const struct driver *driver;
    int gpus;
    struct driver_device about[DOCTOR_GPUS];
    struct doctor_gpu gpu[DOCTOR_GPUS];
    struct doctor_offer offer;
    struct pair pair[DOCTOR_GPUS][DOCTOR_GPUS];              /* [reader][owner] */
};

/* wrong: the machine says that it can, and cannot. */
static const char between[] = "an IOMMU or ACS is between the two: turn both off (intel_iommu=off "
    "or iommu=pt; ACS in the firmware or by setpci), or in a virtual machine let the host pass "
    "both through behind one switch",
                  together[] = "ranks in one container, or containers with --ipc=host --pid=host; "
    "MIG: all in one instance";
static const struct { const char *name, *cell, *remedy; bool wrong; } verdicts[] = {
    [PAIR_READS] = { "ok", "", "", false },
    [PAIR_OTHER_BYTES] = { "other_bytes", "lies", between, true },
    [PAIR_NEVER_ENDS] = { "never_ends", "hangs", between, true },
    [PAIR_NO_ACCESS] = { "no_access", "-", "nvidia-smi topo -p2p r says why", false },
    [PAIR_CLOSED] = { "cannot_open", "closed", together, true },
    [PAIR_UNSUPPORTED] = { "not_supported", "-", together, false },
    [PAIR_UNKNOWN] = { "unknown", "?", "", true },
};

/* ---- the owner's side ------------------------------------------------------------------------ */

static void failed(struct pairs *p, int i, const char *function, CUresult error)
{
    struct text why = TEXT_IN(p->gpu[i].words);
    text_clear(&why);
    p->gpu[i].error = error;
    driver_failed(&p->driver->call, function, error, &why);
}

static void offer(struct pairs *p, int i)
{
    const struct cuda_api *call = &p->driver->call;
    struct doctor_gpu *gpu = &p->gpu[i];
    uint32_t numbers[DOCTOR_NUMBERS];
    uint64_t now = clock_ns();
    p->offer.nonce[i] = text_hash(&now, sizeof now, (uint64_t)getpid() + (uint64_t)i);
    for (uint32_t n = 0; n < DOCTOR_NUMBERS; n++)
        numbers[n] = doctor_number(p->offer.nonce[i], n);
    doctor_pulse("a context on GPU %d", i);
    const char *function = "cuDevicePrimaryCtxRetain";
    CUresult error = call->cuDevicePrimaryCtxRetain(&gpu->context, i);
    if (!error)
        error = call->cuCtxSetCurrent(gpu->context);
    if (!error) {
        function = "cuMemAlloc";
        error = call->cuMemAlloc_v2(&gpu->memory, DOCTOR_PAIR_BYTES);
    }
    doctor_pulse("a handle of memory on GPU %d", i);
    if (!error) {
        function = "cuMemcpyHtoDAsync";
        error = call->cuMemcpyHtoDAsync_v2(gpu->memory, numbers, sizeof numbers, NULL);
    }
    if (!error) {
        function = "cuStreamSynchronize";
        error = call->cuStreamSynchronize(NULL);
    }
    if (!error) {
        function = "cuIpcGetMemHandle";
        error = call->cuIpcGetMemHandle(&gpu->handle, gpu->memory);
    }
    if (error)
        failed(p, i, function, error);
    gpu->shared = !error;
    p->offer.gpu[i].shared = gpu->shared;
    p->offer.gpu[i].handle = gpu->handle;
}

static void leave(struct pairs *p, int i)
{
    if (!p->gpu[i].context)
        return;
    doctor_pulse("the end of its work on GPU %d", i);
    p->driver->call.cuCtxSetCurrent(p->gpu[i].context);
    if (p->gpu[i].memory)
        p->driver->call.cuMemFree_v2(p->gpu[i].memory);
    p->driver->call.cuDevicePrimaryCtxRelease_v2(i);
}

/* ---- the reader's answers -------------------------------------------------------------------- */

static void all_unknown(struct pairs *p, int reader, const char *words)
{
    for (int i = 0; i < p->gpus; i++) {
        struct pair *one = &p->pair[reader][i];
        if (one->told)
            continue;
        *one = (struct pair){ .told = true, .verdict = PAIR_UNKNOWN };
        snprintf(one->words, sizeof one->words, "%s", words);
    }
}

/* "PEER VERDICT MB_S WORDS"; "* WORDS" of all. */
static void take_line(struct pairs *p, int reader, char *line)
{
    char *end;
    line[strcspn(line, "\n")] = 0;
    if (line[0] == '*') {
        all_unknown(p, reader, line + 2);
        return;
    }
    long peer = strtol(line, &end, 10), verdict = strtol(end, &end, 10);
    long mb_s = strtol(end, &end, 10);
    if (peer < 0 || peer >= p->gpus || verdict < 0 || verdict > PAIR_UNKNOWN)
        return;
    struct pair *one = &p->pair[reader][peer];
    *one = (struct pair){
        .told = true, .verdict = (enum doctor_pair)verdict, .gb_s = (double)mb_s / 1e3
    };
    snprintf(one->words, sizeof one->words, "%s", *end == ' ' ? end + 1 : end);
}

static void converse(struct pairs *p, int reader, int to, int from)
{
    char line[DOCTOR_WORDS + 60];
    ssize_t n = write(to, &p->offer, sizeof p->offer);       /* about a page, which a pipe takes */
    close(to);
    FILE *answers = fdopen(from, "r");
    if (!answers) {
        close(from);
        return;
    }
    while (n == (ssize_t)sizeof p->offer && fgets(line, (int)sizeof line, answers)) {
        take_line(p, reader, line);
        doctor_pulse("GPU %d to read the next one's memory", reader);
    }
    fclose(answers);
}

static void ask(struct pairs *p, int reader)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;
    pid_t pid = -1;
    char value[16], words[100];
    snprintf(value, sizeof value, "%d", reader);
    doctor_pulse("a process that reads by GPU %d", reader);
    int error = pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ? -errno : 0;
    if (!error) {
        const int map[][2] = { { in[0], STDIN_FILENO }, { out[1], STDOUT_FILENO } };
        error = doctor_start(&pid, DOCTOR_READ, value, map, 2);
    }
    if (in[0] >= 0)
        close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    if (error) {
        snprintf(words, sizeof words, "a second process cannot be started: %s", strerror(-error));
        all_unknown(p, reader, words);
        return;
    }
    converse(p, reader, in[1], out[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    snprintf(words, sizeof words, "the process that was to read ended by %s %d",
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    all_unknown(p, reader, words);
}

/* What need not be asked. */
static void know(struct pairs *p, int reader, int owner)
{
    struct pair *one = &p->pair[reader][owner];
    int can = 1;
    if (!p->gpu[owner].shared) {
        bool can_not = driver_error(p->gpu[owner].error) == -ENOTSUP;
        *one = (struct pair){ .told = true, .verdict = can_not ? PAIR_UNSUPPORTED : PAIR_CLOSED };
        struct text text = TEXT_IN(one->words);
        text_clear(&text);
        text_add(&text, "%s", p->gpu[owner].words);
    } else if (reader != owner
               && (p->driver->call.cuDeviceCanAccessPeer(&can, reader, owner) || !can)) {
        *one = (struct pair){ .told = true, .verdict = PAIR_NO_ACCESS };
        snprintf(one->words, sizeof one->words, "no access from one to the other");
    }
}

/* ---- where a GPU is -------------------------------------------------------------------------- */

static int node_of(const struct pairs *p, int i)
{
    return topology_node(&p->driver->call, i, &p->about[i]);
}

static bool is_far(const struct pairs *p, int reader, int owner)
{
    return reader != owner
        && topology_far(&p->driver->call, reader, &p->about[reader], owner, &p->about[owner]);
}

/* True: this process, and so its ranks, may run on a CPU of the node. */
static bool may_run_at(int node)
{
    struct numa_map map;
    uint64_t mask[NUMA_CPU_WORDS] = { 0 };
    bool may = false;
    if (cpu_mask(mask, NUMA_CPU_WORDS) <= 0 || numa_map_read(&map) < 0)
        return true;
    for (int i = 0; i < map.count; i++)
        for (int w = 0; w < NUMA_CPU_WORDS && map.node[i].number == node; w++)
            may |= (map.node[i].cpus[w] & mask[w]) != 0;
    numa_map_free(&map);
    return may;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static void print_gpu(const struct pairs *p, int i)
{
    int node = node_of(p, i);
    printf("  %d  %s, bus %s", i, p->about[i].name, p->about[i].bus);
    if (node >= 0)
        printf(", NUMA node %d", node);
    printf("\n");
    if (node >= 0 && !may_run_at(node))
        printf("     ranks may run on no CPU of that node: copies to and from host memory cross\n"
               "     the sockets; numactl --cpunodebind=%d, or taskset, lets them\n",
               node);
}

static void print_matrix(const struct pairs *p)
{
    printf("\nGB/s that a GPU reads of another process's memory, if it reads what is there\n"
           "  memory of   ");
    for (int i = 0; i < p->gpus; i++)
        printf("%9d", i);
    for (int r = 0; r < p->gpus; r++) {
        printf("\n  by GPU %-2d   ", r);
        for (int o = 0; o < p->gpus; o++) {
            const struct pair *one = &p->pair[r][o];
            if (one->verdict == PAIR_READS)
                printf(" %8.1f", one->gb_s);
            else
                printf(" %8s", verdicts[one->verdict].cell);
        }
    }
    printf("\n");
    for (int r = 0; r < p->gpus; r++)
        for (int o = 0; o < p->gpus; o++) {
            const struct pair *one = &p->pair[r][o];
            if (one->verdict == PAIR_READS && is_far(p, r, o))
                printf("%d reads %d across the host bridge, without NVLink: by default they take "
                       "host memory; the clauses device and staged of TUTTI_ALGORITHM choose\n",
                       r, o);
            if (one->verdict == PAIR_READS)
                continue;
            printf("%d reads %d: %s; what they give each other goes through host memory\n", r, o,
                   one->words);
            if (verdicts[one->verdict].remedy[0])
                printf("  %s\n", verdicts[one->verdict].remedy);
        }
}

static void print_json(const struct pairs *p, int wrong)
{
    printf("{\"driver\": \"%d.%d\", \"gpus\": [", p->driver->version / 1000,
           p->driver->version % 1000 / 10);
    for (int i = 0; i < p->gpus; i++) {
        int node = node_of(p, i);
        printf("%s\n  {\"gpu\": %d, \"name\": ", i ? "," : "", i);
        json_quote(stdout, p->about[i].name);
        printf(", \"bus\": ");
        json_quote(stdout, p->about[i].bus);
        printf(", \"numa_node\": %d, \"cpus_of_node\": %s}", node,
               node < 0 || may_run_at(node) ? "true" : "false");
    }
    printf("], \"pairs\": [");
    for (int r = 0; r < p->gpus; r++)
        for (int o = 0; o < p->gpus; o++) {
            const struct pair *one = &p->pair[r][o];
            printf("%s\n  {\"reader\": %d, \"owner\": %d, \"verdict\": \"%s\", \"gb_s\": %.3f, "
                   "\"across_host\": %s, \"reason\": ",
                   r || o ? "," : "", r, o, verdicts[one->verdict].name, one->gb_s,
                   is_far(p, r, o) ? "true" : "false");
            json_quote(stdout, one->words);
            printf(", \"remedy\": ");
            json_quote(stdout, verdicts[one->verdict].remedy);
            printf("}");
        }
    printf("], \"wrong\": %d}\n", wrong);
}

static int none(int error, const char *words, bool json)
{
    if (json) {
        printf("{\"gpus\": [], \"pairs\": [], \"reason\": ");
        json_quote(stdout, words);
        printf(", \"wrong\": %d}\n", error != -ENODEV);
    } else
        printf("GPU: none\n  %s\n", words);
    return fflush(stdout) != 0 || error != -ENODEV;
}

/* A quarter of the patience for a question to the driver; less than none is no limit there. */
static int64_t reading_ns(const char *how)
{
    enum { MOST_MS = 5000, SHARE = 4 };
    const char *ms = strchr(how, ' ');
    int64_t given = ms ? strtoll(ms, NULL, 10) / SHARE : -1;
    return (given <= 0 || given > MOST_MS ? MOST_MS : given) * 1000000;
}

int doctor_pairs(const char *how)
{
    bool json = strncmp(how, "json", 4) == 0;
    static struct pairs p;
    char words[DOCTOR_WORDS + 100];
    struct text why = TEXT_IN(words);
    int wrong = 0;
    if (doctor_orphan() || fcntl(DOCTOR_PULSE_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);                        /* from a reader that died early */
    text_clear(&why);
    doctor_pulse("its beginning, cuInit");
    int error = driver_open(&p.driver, &why);
    if (error < 0)
        return none(error, words, json);
    p.offer.patience_ns = reading_ns(how);
    p.offer.gpus = p.gpus = p.driver->devices < DOCTOR_GPUS ? p.driver->devices : DOCTOR_GPUS;
    for (int i = 0; i < p.gpus; i++) {
        driver_device(p.driver, i, &p.about[i], NULL);
        offer(&p, i);
    }
    for (int r = 0; r < p.gpus; r++) {
        for (int o = 0; o < p.gpus; o++)
            know(&p, r, o);
        for (int o = 0; o < p.gpus; o++)
            p.offer.gpu[o].shared = p.gpu[o].shared && !p.pair[r][o].told;
        ask(&p, r);
    }
    for (int i = 0; i < p.gpus; i++)
        leave(&p, i);
    for (int r = 0; r < p.gpus; r++)
        for (int o = 0; o < p.gpus; o++)
            wrong += verdicts[p.pair[r][o].verdict].wrong;
    if (json)
        print_json(&p, wrong);
    else {
        printf("GPU: %d, by a CUDA driver of version %d.%d\n", p.gpus, p.driver->version / 1000,
               p.driver->version % 1000 / 10);
        for (int i = 0; i < p.gpus; i++)
            print_gpu(&p, i);
        print_matrix(&p);
        if (wrong)
            printf("%d pair%s of GPUs cannot do what the driver says\n", wrong,
                   wrong == 1 ? "" : "s");
    }
    return fflush(stdout) != 0 || wrong > 0;
}
