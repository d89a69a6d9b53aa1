/* The rank's process has a memory file for that (os/stack). Its handler appends to the file what
 * the interrupted thread does; here the file's new bytes are read, by pread. What is stopped or
 * deep in the kernel cannot answer, and is not asked: the signal would only wait there.
 * The signal may end a sleep of the program early, so nothing but --stack sends it.
 * Cost: a search in one process's descriptors, and at most 200 ms. */
#include "cli/why_stack.h"

#include "base/clock.h"
#include "os/proc_files.h"
#include "os/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_NS UINT64_C(200000000)
enum { ANSWER_MOST = 32 * 1024, ANSWER_LINE = 512, ANSWER_LINES = 100 };

/* The file of that process alone; -errno. */
static int stack_open(pid_t pid)
{
    struct proc_files files;
    int fd = proc_files_find(&files, STACK_FILE, false);
    if (fd < 0)
        return fd;
    fd = -ENOENT;
    for (size_t i = 0; i < files.n && fd < 0; i++)
        if (files.at[i].pid == pid)
            fd = proc_file_open(&files.at[i]);
    proc_files_free(&files);
    return fd;
}

static off_t stack_size(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_size : 0;
}

/* What has come behind `from`, up to its last word; 0: nothing yet. */
static size_t stack_read(int fd, off_t from, char *text)
{
    off_t at = stack_size(fd) < from ? 0 : from;     /* it has begun anew */
    ssize_t n = pread(fd, text, ANSWER_MOST - 1, at);
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *end = strstr(text, "\nend\n");
    if (!end && strncmp(text, "end\n", 4) != 0)
        return n == ANSWER_MOST - 1 ? (size_t)n : 0;
    return end ? (size_t)(end - text) + 1 : 0;
}

static void stack_show(FILE *out, const char *text, size_t n)
{
    char line[ANSWER_LINE];
    for (int lines = 0; n > 0 && lines < ANSWER_LINES; lines++) {
        const char *end = memchr(text, '\n', n);
        size_t bytes = end ? (size_t)(end - text) : n;
        struct text t = TEXT_IN(line);
        text_clear(&t);
        text_add_foreign(&t, text, bytes);
        fprintf(out, "    %s\n", line);
        bytes += end != NULL;
        text += bytes;
        n -= bytes;
    }
}

static const char *stack_ask(FILE *out, const struct rank_state *s, int fd)
{
    char *text = malloc(ANSWER_MOST);
    size_t n = 0;
    off_t from = stack_size(fd);
    uint64_t until = clock_ns() + ANSWER_NS;
    if (!text)
        return "no memory";
    if (syscall(SYS_tgkill, s->process.pid, s->process.tid, STACK_SIGNAL) < 0) {
        free(text);
        return "no answer: the signal cannot be sent";
    }
    while ((n = stack_read(fd, from, text)) == 0 && clock_ns() < until)
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    if (n) {
        fprintf(out, "  stack of rank %u, pid %d:\n", s->rank, (int)s->process.pid);
        stack_show(out, text, n);
    }
    free(text);
    return n ? NULL : "no answer within 200 ms";
}

void why_stack(FILE *out, const struct rank_state *s)
{
    const char *why = NULL;
    if (s->process.kernel)
        why = "a black box has none";
    else if (s->condition == RANK_STOPPED)
        why = "no answer: it is stopped";
    else if (s->condition == RANK_KERNEL)
        why = "no answer: it cannot be interrupted in the kernel";
    int fd = why ? -1 : stack_open(s->process.pid);
    if (!why && fd < 0)
        why = "it has no handler for it";
    else if (!why && !process_takes(s->process.pid, STACK_SIGNAL))
        why = "its handler is gone";
    else if (!why)
        why = stack_ask(out, s, fd);
    if (fd >= 0)
        close(fd);
    if (why)
        fprintf(out, "  stack of rank %u: %s\n", s->rank, why);
}
