/* SPDX-License-Identifier: MIT */
/* A network whose packets take a given time, between hosts that are namespaces: each gets an
 * interface "slow0", whose packets this process reads, keeps for that time and hands to the host
 * with their address.
 *
 *     relay MICROSECONDS PID ADDRESS [PID ADDRESS]...
 *
 * PID: of a process in the host's network namespace. Prints "ready"; ends when its input ends. What
 * it adds of its own: two copies and two calls of the kernel for each packet, and a wake. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 16, MTU = 9000, SLOTS = 16384, BATCH = 64, QUEUE = 8192 };

struct packet { int64_t due; int to; uint32_t bytes; char data[MTU + 64]; };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void set_address(int any, struct ifreq *r, unsigned long request, const char *text)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    if (inet_pton(AF_INET, text, &a.sin_addr) != 1) {
        fprintf(stderr, "relay: %s is no address: give one like 10.78.0.1\n", text);
        exit(2);
    }
    memcpy(&r->ifr_addr, &a, sizeof a);
    must(ioctl(any, request, r), text);
}

/* The interface of one host. */
static int enter(const char *pid, const char *address)
{
    char path[64];
    struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int net = open(path, O_RDONLY | O_CLOEXEC);
    must(net, path);
    must(setns(net, CLONE_NEWNET), path);
    close(net);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    must(fd, "/dev/net/tun");
    snprintf(r.ifr_name, sizeof r.ifr_name, "slow0");
    must(ioctl(fd, TUNSETIFF, &r), "slow0");
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(any, "socket");
    set_address(any, &r, SIOCSIFADDR, address);
    set_address(any, &r, SIOCSIFNETMASK, "255.255.255.0");
    r.ifr_mtu = MTU;
    must(ioctl(any, SIOCSIFMTU, &r), "mtu");
    r.ifr_qlen = QUEUE;
    must(ioctl(any, SIOCSIFTXQLEN, &r), "txqueuelen");
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    must(ioctl(any, SIOCSIFFLAGS, &r), "up");
    close(any);
    return fd;
}

static struct { struct packet *at; uint64_t in, out; } queue;

/* Up to BATCH packets of one host, as they are. Those for nobody are dropped. */
static void take(int fd, const uint32_t address[], int hosts, int64_t delay)
{
    for (int i = 0; i < BATCH && queue.in - queue.out < SLOTS; i++) {
        struct packet *p = &queue.at[queue.in % SLOTS];
        ssize_t n = read(fd, p->data, sizeof p->data);
        uint32_t to;
        if (n <= 0)
            return;
        if (n < 20 || (p->data[0] & 0xf0) != 0x40)
            continue;
        memcpy(&to, p->data + 16, sizeof to);
        p->due = now() + delay;
        p->bytes = (uint32_t)n;
        for (p->to = 0; p->to < hosts && address[p->to] != to; p->to++)
            ;
        queue.in += p->to < hosts;
    }
}

/* Hands out what is due. Nanoseconds until the next is; -1: none is on its way. */
static int64_t give(const struct pollfd host[])
{
    while (queue.out < queue.in) {
        struct packet *p = &queue.at[queue.out % SLOTS];
        int64_t left = p->due - now();
        if (left > 0)
            return left;
        if (write(host[p->to].fd, p->data, p->bytes) < 0 && errno == EAGAIN)
            return 10000;
        queue.out++;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct pollfd host[HOSTS + 1] = { { .fd = -1 } };
    uint32_t address[HOSTS];
    int hosts = (argc - 2) / 2;
    if (argc < 4 || argc % 2 || hosts > HOSTS) {
        fprintf(stderr, "usage: relay MICROSECONDS PID ADDRESS [PID ADDRESS]...\n");
        return 2;
    }
    int64_t delay = atoll(argv[1]) * 1000;
    queue.at = calloc(SLOTS, sizeof *queue.at);
    must(queue.at ? 0 : -1, "memory");
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    for (int i = 0; i < hosts; i++) {
        const char *text = argv[3 + 2 * i];
        host[i] = (struct pollfd){ .fd = enter(argv[2 + 2 * i], text), .events = POLLIN };
        inet_pton(AF_INET, text, &address[i]);
    }
    host[hosts] = (struct pollfd){ .fd = 0, .events = POLLIN };
    puts("ready");
    fflush(stdout);
    for (char c; !(host[hosts].revents && read(0, &c, 1) <= 0);) {
        int64_t left = give(host);
        struct timespec t = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
        if (ppoll(host, (nfds_t)hosts + 1, left < 0 ? NULL : &t, NULL) < 0 && errno != EINTR)
            must(-1, "poll");
        for (int i = 0; i < hosts; i++)
            if (host[i].revents)
                take(host[i].fd, address, hosts, delay);
    }
    return 0;
}
