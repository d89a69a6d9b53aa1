/* What came of it: a table of 80 columns, and a file of JSON lines. A figure that there is not is
 * said to be none, and why. */
#include "device/device.h"

#include "harness/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct goal { const char *what; int met, missed; };

static const char *figure(char *to, size_t room, enum unit unit, double value)
{
    if (value > 0)
        return unit_text(to, room, unit, value);
    snprintf(to, room, "-");
    return to;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void write_floors(const struct floors *f)
{
    const struct { const char *what; double value; } rows[] = {
        { "PCIe, device to host, pinned memory", f->down },
        { "PCIe, host to device, pinned memory", f->up },
        { "PCIe, both at once, each way", f->both },
        { "GPU memory, copy inside, read + written", f->hbm },
    };
    char text[32];
    printf("%s, CUDA %s. Floors, by events in this run:\n", f->gpu, f->driver);
    for (int i = 0; i < 4; i++)
        printf("  %-42s %12s   middle half %4.0f %%\n", rows[i].what,
               figure(text, sizeof text, UNIT_RATE, rows[i].value), f->spread[i] * 100);
    printf("  %-42s %12s\n", "kernel started and waited for",
           figure(text, sizeof text, UNIT_NS, f->launch_ns));
    printf("  %-42s %12s\n", "4 KiB to the host and waited for",
           figure(text, sizeof text, UNIT_NS, f->copy_ns));
    if (f->why[0])
        printf("  not all measured: %.60s\n", f->why);
}

/* Systems side by side would be wider than 80 columns: one line each. */
static void write_point(const struct floors *f, const struct point *p)
{
    char text[6][32];
    bool pcie;
    double floor = floor_ns(f, p, &pcie);
    printf("%-11s %9s ", system_names[p->system],
           unit_text(text[0], 32, UNIT_BYTES, (double)p->bytes));
    if (!p->samples) {
        printf("not measured: %.41s\n", p->why);
        return;
    }
    printf("%8s %8s %8s %10s ", figure(text[1], 32, UNIT_NS, p->median),
           figure(text[2], 32, UNIT_NS, p->low), figure(text[3], 32, UNIT_NS, p->high),
           figure(text[4], 32, UNIT_RATE, (double)p->bytes / p->median * 1e9));
    printf("%8s ", figure(text[5], 32, UNIT_NS, floor));
    if (floor > 0)
        printf("%4.0f %%%s", 100 * floor / p->median, pcie ? "" : "*");
    printf("%s\n", p->why[0] ? "!" : "");
    if (p->why[0])
        printf("            ! %.65s\n", p->why);
}

static bool all_alike(const struct board *b, int first, int end)
{
    for (int i = first; i < end; i++)
        if (b->point[i].samples || strcmp(b->point[i].why, b->point[first].why) != 0)
            return false;
    return true;
}

static void write_kind(const struct board *b, const struct options *o, enum doing kind, int ranks)
{
    printf("\n%s of %d ranks on one GPU, f32\n", doing_names[kind], ranks);
    printf("%-11s %9s %8s %8s %8s %10s %8s %s\n", "road", "bytes", "median", "low", "high",
           "bytes/time", "floor", "its share");
    for (int i = 0; i < b->points; i++) {
        const struct point *p = &b->point[i];
        if (p->kind != kind || p->ranks != ranks)
            continue;
        if (p->bytes == o->sizes[0] && all_alike(b, i, i + o->size_count)) {
            printf("%-11s not measured: %.54s\n", system_names[p->system], p->why);
            i += o->size_count - 1;
        } else {
            write_point(&b->floors, p);
        }
    }
}

/* ---- what it should come to ------------------------------------------------------------------ */

static const struct point *find(const struct board *b, enum system system, int ranks, size_t bytes)
{
    for (int i = 0; i < b->points; i++) {
        const struct point *p = &b->point[i];
        if (p->kind == DO_ALL_REDUCE && p->system == system && p->ranks == ranks
            && p->bytes == bytes && p->samples)
            return p;
    }
    return NULL;
}

static void note(struct goal *goal, bool met)
{
    goal->met += met;
    goal->missed += !met;
}

static void judge(const struct board *b, struct goal goal[4])
{
    for (int i = 0; i < b->points; i++) {
        const struct point *p = &b->point[i];
        bool pcie;
        double floor = floor_ns(&b->floors, p, &pcie);
        if (p->kind != DO_ALL_REDUCE || !p->samples || p->why[0])
            continue;
        if (p->system == SYSTEM_PINNED && p->bytes >= (size_t)16 << 20 && floor > 0)
            note(&goal[0], floor / p->median >= 0.7);
        if (p->system == SYSTEM_LEADER && p->bytes >= (size_t)64 << 20 && floor > 0)
            note(&goal[1], floor / p->median >= 0.5);
        const struct point *gloo = find(b, SYSTEM_GLOO, p->ranks, p->bytes);
        if (p->system == SYSTEM_LEADER && p->bytes >= (size_t)64 << 20 && gloo)
            note(&goal[2], gloo->median >= 20 * p->median);
        if (p->system == SYSTEM_PINNED && p->bytes <= 4096)
            note(&goal[3], p->median < 60e3);
    }
}

static void write_goals(const struct board *b)
{
    struct goal goal[] = {
        { "pinned, from 16 MiB on: at least 70 % of PCIe's floor", 0, 0 },
        { "leader, from 64 MiB on: at least 50 % of the GPU memory's floor", 0, 0 },
        { "leader, from 64 MiB on: at least 20 times as fast as gloo", 0, 0 },
        { "pinned, up to 4 KiB: below 60 us", 0, 0 },
    };
    judge(b, goal);
    printf("\nGoals (all_reduce; sizes and numbers of ranks for which it holds)\n");
    for (int i = 0; i < 4; i++) {
        printf("  %-64s ", goal[i].what);
        if (goal[i].met + goal[i].missed)
            printf("%d of %d\n", goal[i].met, goal[i].met + goal[i].missed);
        else
            printf("not measured\n");
    }
}

void write_table(const struct board *b, const struct options *o)
{
    if (o->quick)
        printf("--quick: it works; the figures mean nothing.\n");
    if (o->memory != MEMORY_KEPT)
        printf("Our buffers are of %s.\n", o->memory == MEMORY_VMM ? "cuMemCreate" : "cuMemAlloc");
    if (o->busy_ms > 0)
        printf("Each rank has kernels of its own running, of %g ms.\n", o->busy_ms);
    write_floors(&b->floors);
    for (int k = 0; k < DOINGS; k++)
        for (int l = 0; l < o->lists; l++)
            write_kind(b, o, (enum doing)k, o->ranks[l]);
    printf("\nA median is that of single operations, from the first rank's start to the last\n"
           "rank's end; low and high hold the middle half. bytes: of a rank's result, S.\n"
           "Floor of pinned and gloo: what N ranks send and receive, over PCIe both ways at\n"
           "once; an all_reduce N*S each way. Floor of the others (*): 2*N*S of the GPU's\n"
           "memory, each byte sent read once and each received written once. A rank writes\n"
           "no memory but its own: it direct its result from the rank that folded, so an\n"
           "all_reduce by leader or peers moves (N+1)*S + 2*(N-1)*S, and even at the\n"
           "memory's full speed its share of the floor is 2N / (3N-1): %.0f %% of 2 ranks,\n"
           "%.0f %% of 8.\n", 100 * 4.0 / 5, 100 * 16.0 / 23);
    write_goals(b);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Words of ours and of CUDA's have no control characters but line ends. */
static void write_string(FILE *to, const char *name, const char *words)
{
    fprintf(to, "\"%s\": \"", name);
    for (const char *c = words; *c; c++)
        fprintf(to, *c == '"' || *c == '\\' ? "\\%c" : "%c", (unsigned char)*c < ' ' ? ' ' : *c);
    fputc('"', to);
}

static void write_head(FILE *to, const struct board *b, const struct options *o)
{
    struct machine m;
    const struct floors *f = &b->floors;
    machine_describe(&m);
    fprintf(to, "{\"what\": \"machine\", ");
    write_string(to, "gpu", f->gpu);
    fprintf(to, ", \"cuda\": \"%s\", ", f->driver);
    write_string(to, "cpu", m.cpu);
    fprintf(to, ", \"cpus\": %d, ", m.cpus);
    write_string(to, "system", m.system);
    fprintf(to, ", \"date\": \"%s\", \"seconds\": %g, \"quick\": %s, "
            "\"memory\": \"%s\", \"busy_ms\": %g}\n", m.date, o->seconds,
            o->quick ? "true" : "false", memory_names[o->memory], o->busy_ms);
    fprintf(to,
            "{\"what\": \"floors\", \"copy_bytes\": %zu, \"device_to_host\": %.6g, "
            "\"host_to_device\": %.6g, \"both_each_way\": %.6g, "
            "\"gpu_memory\": %.6g, \"spread\": [%.4f, %.4f, %.4f, %.4f], \"kernel_ns\": %.1f, "
            "\"copy_4k_ns\": %.1f, ",
            f->bytes, f->down, f->up, f->both, f->hbm, f->spread[0], f->spread[1], f->spread[2],
            f->spread[3], f->launch_ns, f->copy_ns);
    write_string(to, "why", f->why);
    fprintf(to, "}\n");
}

int write_file(const struct board *b, const struct options *o)
{
    int measured = 0, wrong = 0;
    FILE *to = fopen(o->out, "w");
    if (!to) {
        fprintf(stderr, "device: %s: %s\n", o->out, strerror(errno));
        return 1;
    }
    write_head(to, b, o);
    for (int i = 0; i < b->points; i++) {
        const struct point *p = &b->point[i];
        bool pcie;
        double floor = floor_ns(&b->floors, p, &pcie);
        fprintf(to,
                "{\"what\": \"%s\", \"road\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"samples\": "
                "%d, \"median_ns\": %.1f, "
                "\"low_ns\": %.1f, \"high_ns\": %.1f, \"least_ns\": %.1f, \"floor_ns\": %.1f, "
                "\"floor\": \"%s\", ",
                doing_names[p->kind], system_names[p->system], p->ranks, p->bytes, p->samples,
                p->median, p->low, p->high, p->least, floor, pcie ? "pcie" : "memory");
        write_string(to, "why", p->why);
        fprintf(to, "}\n");
        measured += p->samples > 0;
        wrong += strstr(p->why, "WRONG") != NULL && p->system <= SYSTEM_PEERS;
    }
    if (fclose(to) != 0) {
        fprintf(stderr, "device: %s: %s\n", o->out, strerror(errno));
        return 1;
    }
    fprintf(stderr, "device: %d of %d figures, in %s\n", measured, b->points, o->out);
    return wrong || !measured;
}
