/* PyTorch's gloo on CUDA tensors, where python3 has torch: what a program uses today that has more
 * ranks than GPUs. One process of python for each rank; it prints a line for each size, "BYTES
 * SAMPLES MEDIAN LOW HIGH LEAST" in ns, or why there is none. */
#include "device/device.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char script[] =
    "import sys, os, time, statistics\n"
    "def rank_main(rank, size, sizes, seconds, path):\n"
    "    import torch, torch.distributed as dist\n"
    "    dist.init_process_group('gloo', init_method='file://' + path, rank=rank, "
    "world_size=size)\n"
    "    dev = torch.device('cuda', 0)\n"
    "    for n in sizes:\n"
    "        x = torch.empty(n // 4, dtype=torch.float32, device=dev)\n"
    "        took, end, turn = [], time.monotonic() + seconds / len(sizes), 0\n"
    "        while True:\n"
    "            x.fill_(float(rank + 1 + turn % 3))\n"
    "            torch.cuda.synchronize()\n"
    "            go = torch.tensor([1 if turn < 4 or (turn < 64 and time.monotonic() < end) else "
    "0])\n"
    "            dist.broadcast(go, 0)\n"
    "            dist.barrier()\n"
    "            if not int(go): break\n"
    "            t = time.perf_counter()\n"
    "            dist.all_reduce(x)\n"
    "            torch.cuda.synchronize()\n"
    "            t = torch.tensor([time.perf_counter() - t], dtype=torch.float64)\n"
    "            dist.all_reduce(t, op=dist.ReduceOp.MAX)\n"
    "            if turn: took.append(float(t) * 1e9)\n"
    "            want = float(sum(r + 1 + turn % 3 for r in range(size)))\n"
    "            if float(x[0]) != want or float(x[-1]) != want:\n"
    "                print('! wrong result', flush=True); os._exit(1)\n"
    "            turn += 1\n"
    "        took.sort()\n"
    "        q = lambda p: took[min(len(took) - 1, int(p * len(took)))]\n"
    "        if rank == 0: print(n, len(took), q(.5), q(.25), q(.75), took[0], flush=True)\n"
    "    dist.barrier()\n"
    "if __name__ == '__main__':\n"
    "    try: import torch\n"
    "    except Exception: print('! no torch', flush=True); sys.exit(0)\n"
    "    if not torch.cuda.is_available(): print('! torch has no CUDA', flush=True); sys.exit(0)\n"
    "    if os.environ.get('RANK_OF_PERF') is None:\n"
    "        import subprocess, tempfile\n"
    "        path = os.path.join(tempfile.mkdtemp(), 'meet')\n"
    "        size = int(sys.argv[1])\n"
    "        all = [subprocess.Popen([sys.executable, '-c', sys.argv[4], sys.argv[1], sys.argv[2], "
    "sys.argv[3], sys.argv[4], path],\n"
    "                                env=dict(os.environ, RANK_OF_PERF=str(r))) for r in "
    "range(size)]\n"
    "        bad = [p.wait() for p in all]\n"
    "        if any(bad): print('! a rank of torch failed', flush=True)\n"
    "        import shutil; shutil.rmtree(os.path.dirname(path), ignore_errors=True)\n"
    "    else:\n"
    "        sizes = [int(n) for n in sys.argv[3].split(',')]\n"
    "        rank_main(int(os.environ['RANK_OF_PERF']), int(sys.argv[1]), sizes, "
    "float(sys.argv[2]), sys.argv[5])\n";

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* In its own process group, so that all of it can be ended. */
static pid_t start(const struct part *part, int *from)
{
    char size[16], seconds[32], sizes[400] = "";
    int fds[2];
    snprintf(size, sizeof size, "%d", part->ranks);
    snprintf(seconds, sizeof seconds, "%g", part->ns / 1e9);
    for (int i = part->first; i < part->end; i++)
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%zu",
                 i > part->first ? "," : "", part->board->point[i].bytes);
    if (pipe(fds) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        execlp("python3", "python3", "-c", script, size, seconds, sizes, script, (char *)NULL);
        ssize_t n = write(STDOUT_FILENO, "! no python3\n", 13);
        _exit(n != 13);
    }
    close(fds[1]);
    *from = fds[0];
    return pid;
}

static void take_line(const struct part *part, const char *line)
{
    unsigned long long bytes;
    struct point p;
    if (line[0] == '!') {
        part_refuse(part, line + 2);
        return;
    }
    if (sscanf(line, "%llu %d %lf %lf %lf %lf", &bytes, &p.samples, &p.median, &p.low, &p.high,
               &p.least)
        != 6)
        return;
    for (int i = part->first; i < part->end; i++) {
        struct point *to = &part->board->point[i];
        if (to->bytes == bytes) {
            to->samples = p.samples;
            to->median = p.median;
            to->low = p.low;
            to->high = p.high;
            to->least = p.least;
        }
    }
}

void gloo_measure(const struct part *part)
{
    char bytes[4096];
    size_t used = 0;
    int from = -1, status;
    /* to import torch takes some of it */
    int64_t last = now_ms() + (int64_t)(part->ns * 2 / 1e6) + (part->quick ? 15000 : 60000);
    pid_t pid = start(part, &from);
    struct pollfd on = { .fd = from, .events = POLLIN };
    while (pid > 0) {
        int64_t left = last - now_ms();
        int ready = left > 0 ? poll(&on, 1, (int)left) : 0;
        ssize_t n = ready > 0 ? read(from, bytes + used, sizeof bytes - 1 - used) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            part_refuse(part, ready == 0 ? "it did not end in time" : "it gave no figures");
            break;
        }
        used += (size_t)n;
        bytes[used] = 0;
        for (char *end; (end = strchr(bytes, '\n')) != NULL;) {
            *end = 0;
            take_line(part, bytes);
            used -= (size_t)(end + 1 - bytes);
            memmove(bytes, end + 1, used + 1);
        }
        if (used == sizeof bytes - 1)
            used = 0;
    }
    if (pid > 0) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);                          /* if it has not come to have a group yet */
        waitpid(pid, &status, 0);
    } else {
        part_refuse(part, "no process for python3");
    }
    if (from >= 0)
        close(from);
}
