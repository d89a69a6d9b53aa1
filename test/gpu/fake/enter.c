/* The gate of every call: is CUDA there, is this the process that began it, is a fault wanted here;
 * and the reports of misuse. A process that has forked off is answered as the real driver does,
 * before the lock is touched: another thread of the parent may have held it. */
#include "fake/fake.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXITING = 4 };   /* PF_EXITING in /proc/PID/stat, set before a thread lets go of its files */

struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static struct { const char *name; uint64_t count; } calls[CALLS_MOST];
_Thread_local const char *fake_entered;
static _Thread_local CUresult fault_later;

uint64_t fake_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t fake_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A process that is ending or was killed has ended for us, though it may not be gone and its parent
 * may not have reaped it: whoever heard of its end by a socket must find it so. */
bool fake_process_lives(int pid)
{
    char path[64], line[512];
    if (kill(pid, 0) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    const char *after = got ? strrchr(line, ')') : NULL;
    char state = '?';
    unsigned flags = 0;
    if (!after || sscanf(after + 2, "%c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return false;                                /* it went while we read */
    return state != 'Z' && state != 'X' && !(flags & EXITING);
}

void fake_misuse(const char *kind, const char *format, ...)
{
    char line[512];
    int used = snprintf(line, sizeof line, "fake CUDA: misuse: %s: ", kind);
    va_list list;
    va_start(list, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, list);
    va_end(list);
    size_t n = (size_t)used + (more > 0 ? (size_t)more : 0);
    if (n > sizeof line - 2)
        n = sizeof line - 2;
    line[n++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written;
    fake.misuses++;
    if (!fake.report_only)
        _exit(FAKE_MISUSE_STATUS);
}

/* Before cuInit a process may fork as it likes; a thread of the parent may have had the lock. */
static void in_child(void)
{
    if (!fake.ready)
        pthread_mutex_init(&fake.lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

bool fake_sticky(CUresult error)
{
    return error == 700 || error == 702 || error == 710 || (error >= 714 && error <= 719);
}

static uint64_t count_call(const char *name)
{
    fake.calls++;
    for (int i = 0; i < CALLS_MOST; i++) {
        if (!calls[i].name)
            calls[i].name = name;
        if (!strcmp(calls[i].name, name))
            return ++calls[i].count;
    }
    return 0;
}

/* Does `word`, of length n, name this call? cuMemcpyDtoHAsync is cuMemcpyDtoHAsync_v2, too. */
static bool names(const char *word, size_t n, const char *call)
{
    size_t full = strlen(call);
    if (n == full && !memcmp(word, call, n))
        return true;
    return full > 3 && n == full - 3 && !strcmp(call + n, "_v2") && !memcmp(word, call, n);
}

/* FAKE_CUDA_FAIL=symbol:nth:error,... nth "*": every time. error "700a": the call succeeds, the
 * device then fails so. error "hang": the call never returns. error "0k": the process is killed
 * before the call has done anything. */
static CUresult fault_wanted(const char *call, uint64_t nth)
{
    const char *s = getenv("FAKE_CUDA_FAIL");
    while (s && *s) {
        size_t n = strcspn(s, ":,");
        if (s[n] != ':')
            return 0;
        char *end = NULL;
        bool always = s[n + 1] == '*';
        uint64_t which = always ? nth : strtoull(s + n + 1, NULL, 10);
        const char *error_at = strchr(s + n + 1, ':');
        if (!error_at)
            return 0;
        bool hangs = !strncmp(error_at + 1, "hang", 4);
        CUresult error = (CUresult)strtol(error_at + 1, &end, 10);
        if (names(s, n, call) && which == nth) {
            while (hangs)
                pause();
            if (*end == 'k')
                kill(getpid(), SIGKILL);
            if (*end != 'a')
                return error;
            fault_later = error;
        }
        s = strchr(end, ',');
        s = s ? s + 1 : NULL;
    }
    return 0;
}

static bool works_without(const char *call)
{
    static const char *const those[] = { "cuInit", "cuDriverGetVersion", "cuGetErrorName",
                                         "cuGetErrorString" };
    for (size_t i = 0; i < sizeof those / sizeof those[0]; i++)
        if (!strcmp(those[i], call))
            return true;
    return false;
}

/* Nothing can be made of an error of these. */
static bool gives_back(const char *call)
{
    static const char *const parts[] = {
        "Destroy", "Free", "Unregister", "Release", "Unmap", "Close", "Pop", "Unload"
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(call, parts[i]))
            return true;
    return false;
}

CUresult fake_enter(const char *call, bool *held)
{
    *held = false;
    if (fake.pid && fake.pid != getpid() && strncmp(call, "cuGetError", 10) != 0)
        return CUDA_ERROR_NOT_INITIALIZED;
    const char *stub = getenv("FAKE_CUDA_STUB");
    if (stub && *stub == '1')
        return CUDA_ERROR_STUB_LIBRARY;
    pthread_mutex_lock(&fake.lock);
    *held = true;
    fake_entered = call;
    fault_later = 0;
    CUresult error = fault_wanted(call, count_call(call));
    if (!fake.ready && !works_without(call))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (error && fake_sticky(error) && !strstr(call, "cuThread")) {    /* of no context */
        struct CUctx_st *context = NULL;
        if (context_seen(&context) == 0) {
            context_poison(context, error);
            context->told = gives_back(call) ? NULL : call;
        }
    }
    return error ? error : capture_allows(call);
}

void fake_leave(bool *held)
{
    if (*held)
        pthread_mutex_unlock(&fake.lock);
}

/* An operation may carry the fault that was wanted of the call that made it. */
struct op *op_new(enum op_kind kind, const char *call)
{
    struct op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    op->kind = kind;
    op->call = call;
    op->error = fault_later;
    fault_later = 0;
    return op;
}

uint64_t fakeCalls(void)
{
    if (fake.pid && fake.pid != getpid())
        return fake.calls;
    pthread_mutex_lock(&fake.lock);
    uint64_t n = fake.calls;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

uint64_t fakeCallsOf(const char *symbol)
{
    uint64_t n = 0;
    if (fake.pid && fake.pid != getpid())
        return 0;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < CALLS_MOST && calls[i].name; i++)
        if (!strcmp(calls[i].name, symbol))
            n = calls[i].count;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

int fakeMisuses(void)
{
    pthread_mutex_lock(&fake.lock);
    int n = fake.misuses;
    pthread_mutex_unlock(&fake.lock);
    return n;
}
