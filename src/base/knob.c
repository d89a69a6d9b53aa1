/* One row per variable, in the order of the enum, so that a row is found by its number; the test
 * walks all rows. Nothing is cached: a value is read when a comm is made, a few times in a
 * program's life. */
#include "base/knob.h"

#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static const struct knob rows[KNOB_COUNT] = {
    [KNOB_JOB] = { "TUTTI_JOB", KNOB_TEXT, 0, 0, "",
        "the name under which the ranks of a job meet" },
    [KNOB_RANK] = { "TUTTI_RANK", KNOB_INT, 0, 1023, "",
        "this process's rank, from 0" },
    [KNOB_SIZE] = { "TUTTI_SIZE", KNOB_INT, 1, 1024, "",
        "how many ranks the world has" },
    [KNOB_TIMEOUT_MS] = { "TUTTI_TIMEOUT_MS", KNOB_DURATION_MS, -1, INT_MAX, "30min",
        "deadline of every operation; -1: none" },
    [KNOB_JOIN_TIMEOUT_MS] = { "TUTTI_JOIN_TIMEOUT_MS", KNOB_DURATION_MS, -1, INT_MAX, "60s",
        "how long the ranks wait for each other at the start" },
    [KNOB_WARN_MS] = { "TUTTI_WARN_MS", KNOB_DURATION_MS, -1, INT_MAX, "30s",
        "a wait older than this prints who is missing; -1: never" },
    [KNOB_SPIN_US] = { "TUTTI_SPIN_US", KNOB_INT, 0, 1000000, "measured",
        "longest spin in microseconds before a wait yields or sleeps" },
    [KNOB_FLAGS] = { "TUTTI_FLAGS", KNOB_TEXT, 0, 0, "",
        "comma list of bind_core, bind_numa, no_spin, local, ahead, leave, or their number" },
    [KNOB_SPAN_BYTES] = {
        "TUTTI_SPAN_BYTES", KNOB_BYTES, 65536, (int64_t)1 << 40, "a quarter of RAM",
        "address space of each rank's own memory in the arena"
    },
    [KNOB_STORE_BYTES] = { "TUTTI_STORE_BYTES", KNOB_BYTES, 65536, (int64_t)1 << 40, "64 MiB",
        "address space of the job's key-value store, in steps of 2 MiB, touched only as used" },
    [KNOB_ALGORITHM] = { "TUTTI_ALGORITHM", KNOB_TEXT, 0, 0, "built in",
        "which algorithm for which size: all_reduce:0-48=inline,-64k=eager,-inf=pipelined" },
    [KNOB_ISA] = { "TUTTI_ISA", KNOB_TEXT, 0, 0, "the best there is",
        "which instruction set folds: plain, avx2, avx512, neon" },
    [KNOB_FAULT] = { "TUTTI_FAULT", KNOB_TEXT, 0, 0, "",
        "for tests: RANK:OPERATION#N:kill|stop|delay=MS|abort" },
    [KNOB_MEET] = { "TUTTI_MEET", KNOB_TEXT, 0, 0, "",
        "path of a socket to meet at, for containers without a common network namespace" },
    [KNOB_ARENA] = { "TUTTI_ARENA", KNOB_TEXT, 0, 0, "",
        "internal: descriptor:inode of the arena handed down by tutti run" },
    [KNOB_FIRST_SEQ] = { "TUTTI_FIRST_SEQ", KNOB_INT, 0, (int64_t)1 << 62, "0",
        "for tests: the operation number that the first comm starts from" },
    [KNOB_VERIFY] = { "TUTTI_VERIFY", KNOB_FLAG, 0, 1, "0",
        "1: compare the results of collectives on host memory among the ranks, in the next "
        "operation; costs a pass over each" },
    [KNOB_URING] = { "TUTTI_URING", KNOB_FLAG, 0, 1, "1",
        "0: files are read and written by threads, not by io_uring" },
    [KNOB_TUNED] = { "TUTTI_TUNED", KNOB_TEXT, 0, 0, "~/.config/tutti/rules",
        "the file of rules that tutti doctor --tune has written; empty or none: no file" },
    [KNOB_PYTHON_PLAIN] = { "TUTTI_PYTHON_PLAIN", KNOB_FLAG, 0, 1, "0",
        "1: the Python package goes by ctypes, not by its extension" },
    [KNOB_AS_GLOO] = { "TUTTI_AS_GLOO", KNOB_FLAG, 0, 1, "0",
        "1: PyTorch programs that ask for gloo get tutti where a group's ranks share this host" },
    [KNOB_AS_GLOO_QUIET] = { "TUTTI_AS_GLOO_QUIET", KNOB_FLAG, 0, 1, "0",
        "1: nothing is said of who is in gloo's place" },
    [KNOB_VLLM] = { "TUTTI_VLLM", KNOB_FLAG, 0, 1, "0",
        "1: vLLM's processes get tutti.vllm.MessageQueue in place of their own" },
    [KNOB_CACHE] = { "TUTTI_CACHE", KNOB_TEXT, 0, 0, "~/.cache/tutti",
        "the folder for the extension that tutti.torch builds once for each version of PyTorch" },
    [KNOB_BOX] = { "TUTTI_BOX", KNOB_TEXT, 0, 0, "~/.local/state/tutti, by tutti run",
        "the folder for the black box of a job that fails; none: no box" },
    [KNOB_LINES] = { "TUTTI_LINES", KNOB_FLAG, 0, 1, "1 under tutti run",
        "1: what a program in C prints leaves it line by line; 0: as its C library buffers it" },
};

const struct knob *knob_row(enum knob_id id)
{
    return (unsigned)id < KNOB_COUNT ? &rows[id] : NULL;
}

static const char *value_of(const struct knob *row)
{
    const char *s = getenv(row->name);
    return s && *s ? s : NULL;
}

static int parse(const struct knob *row, const char *s, int64_t *value)
{
    int64_t v = 0;
    uint64_t bytes = 0;
    int error = -EINVAL;
    switch (row->kind) {
    case KNOB_INT:
    case KNOB_FLAG:
        error = text_parse_int(s, row->low, row->high, &v);
        break;
    case KNOB_DURATION_MS:
        error = text_parse_duration_ms(s, &v);
        break;
    case KNOB_BYTES:
        error = text_parse_bytes(s, &bytes);
        if (!error && bytes > (uint64_t)row->high)
            error = -EINVAL;
        else
            v = (int64_t)bytes;
        break;
    case KNOB_TEXT:
        break;
    }
    if (error || v < row->low || v > row->high)
        return -EINVAL;
    *value = v;
    return 0;
}

static void expected(const struct knob *row, struct text *t)
{
    switch (row->kind) {
    case KNOB_INT:
    case KNOB_FLAG:
        text_add(t, "expected an integer between %lld and %lld", (long long)row->low,
                 (long long)row->high);
        break;
    case KNOB_DURATION_MS:
        text_add(t, "expected a duration such as 30s, 500ms or 500, at most %lld ms%s",
                 (long long)row->high, row->low < 0 ? ", or never" : "");
        break;
    case KNOB_BYTES:
        text_add(t, "expected a size such as 64k or 16M between ");
        text_add_bytes(t, (uint64_t)row->low);
        text_add(t, " and ");
        text_add_bytes(t, (uint64_t)row->high);
        break;
    case KNOB_TEXT:
        text_add(t, "is text and has no number");
        break;
    }
}

int knob_int(enum knob_id id, int64_t *value, char *why, int room)
{
    const struct knob *row = knob_row(id);
    const char *s = row ? value_of(row) : NULL;
    if (!s)
        return 0;
    if (parse(row, s, value) == 0)
        return 1;
    if (why && room > 0) {
        struct text t = { why, (size_t)room, 0 };
        text_clear(&t);
        text_add(&t, "%s=%.60s: ", row->name, s);
        expected(row, &t);
    }
    return -EINVAL;
}

int knob_text(enum knob_id id, const char **value)
{
    const struct knob *row = knob_row(id);
    const char *s = row ? value_of(row) : NULL;
    if (!s)
        return 0;
    *value = s;
    return 1;
}
