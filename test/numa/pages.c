#include "pages.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char root[] = "/sys/devices/system/node";

/* "0-2,5" in a file, as a set; how many. A file that is not there holds nothing. */
static int read_list(const char *name, cpu_set_t *set)
{
    char path[128], text[1024] = "";
    CPU_ZERO(set);
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof text, f))
        text[0] = 0;
    fclose(f);
    for (char *at = text; *at >= '0' && *at <= '9'; at += *at == ',') {
        long from = strtol(at, &at, 10), to = *at == '-' ? strtol(at + 1, &at, 10) : from;
        for (long i = from; i <= to && i < CPU_SETSIZE; i++)
            CPU_SET((size_t)i, set);
    }
    return CPU_COUNT(set);
}

uint64_t pages_nodes(void)
{
    cpu_set_t set;
    uint64_t nodes = 0;
    if (!read_list("has_memory", &set))
        return 1;
    for (size_t i = 0; i < NODES; i++)
        nodes |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i;
    return nodes;
}

int pages_node_cpus(int node, cpu_set_t *cpus)
{
    char name[64];
    snprintf(name, sizeof name, "node%d/cpulist", node);
    return read_list(name, cpus);
}

uint64_t pages_nodes_of(const cpu_set_t *cpus)
{
    cpu_set_t here;
    uint64_t nodes = pages_nodes(), found = 0;
    for (int i = 0; i < NODES; i++) {
        if (!(nodes >> i & 1) || !pages_node_cpus(i, &here))
            continue;
        CPU_AND(&here, &here, cpus);
        found |= (uint64_t)(CPU_COUNT(&here) > 0) << i;
    }
    return found ? found : nodes;           /* a machine without /sys/devices/system/node has one */
}

long pages_free_kib(int node)
{
    char path[128], line[128];
    long kib = 0;
    snprintf(path, sizeof path, "%s/node%d/meminfo", root, node);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Node %*d MemFree: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

/* A page that is in memory but not in this process's tables is unknown to move_pages: it is
 * read once. */
int pages_look(char *at, size_t bytes, int *node)
{
    size_t n = bytes / PAGE;
    unsigned char *there = malloc(n);
    void **page = malloc(n * sizeof *page);
    int error = there && page ? 0 : -ENOMEM;
    if (!error && mincore(at, n * PAGE, there) != 0)
        error = -errno;
    for (size_t i = 0; i < n && !error; i++) {
        page[i] = at + i * PAGE;
        if (there[i] & 1)
            (void)*(volatile char *)page[i];
    }
    for (size_t i = 0; i < n && !error; i++) {
        node[i] = ABSENT;
        if ((there[i] & 1) && syscall(SYS_move_pages, 0, 1, &page[i], NULL, &node[i], 0) != 0)
            error = -errno;
        if (!error && (there[i] & 1) && node[i] < 0)
            error = node[i];
    }
    free(there);
    free(page);
    return error;
}

int pages_policy(void *at, uint64_t *nodes)
{
    int mode = 0;
    unsigned long bits[1024 / (8 * sizeof(unsigned long))] = { 0 };
    if (syscall(SYS_get_mempolicy, &mode, bits, 1024, at, at ? MPOL_F_ADDR : 0) != 0)
        return -errno;
    *nodes = bits[0];
    return mode;
}
