/* SPDX-License-Identifier: MIT */
/* Shows: one loop for everything. Each rank serves a socket out of a ring of its own
 * (io_uring), and the ranks add up their counts as they go: an all_reduce is one more thing that
 * the ring waits for, so no request waits for a slow rank. The client is a thread.
 *
 *     tutti run -n 2 serve */
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tutti.h>
#include <tutti_uring.h>
#include <unistd.h>

enum { REQUESTS = 1000, REQUEST = 1, SUM = 2 };

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "serve: %s\n", tutti_explain(comm));
    return 1;
}

/* asks how many requests all ranks have served, again and again */
static void *client(void *socket)
{
    int fd = *(int *)socket;
    long answer;
    for (int i = 0; i < REQUESTS; i++)
        if (write(fd, "?", 1) != 1 || read(fd, &answer, sizeof answer) != sizeof answer) break;
    close(fd);
    return NULL;
}

static void listen_again(struct io_uring *ring, int fd, char *byte)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    io_uring_prep_recv(sqe, fd, byte, 1, 0);
    io_uring_sqe_set_data64(sqe, REQUEST);
}

/* give[0]: what this rank has served; give[1]: 1, it is through. The sum is awaited in
 * the ring. */
static int add_up(struct io_uring *ring, long *give, long *sum, tutti_comm *world,
                  tutti_work **work)
{
    if (tutti_all_reduce(give, sum, 2, TUTTI_I64, TUTTI_SUM, world, &(tutti_call){ .work = work })
        < 0)
        return -1;
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (tutti_uring_prep_wait(sqe, *work) < 0) return -1;
    io_uring_sqe_set_data64(sqe, SUM);
    return 0;
}

int main(void)
{
    struct io_uring ring;
    pthread_t thread;
    tutti_comm *world;
    tutti_work *work;
    char byte;
    int fds[2];
    long served = 0, sums = 0, give[2] = { 0, 0 }, sum[2] = { 0, 0 }, all = 0;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int error = io_uring_queue_init(8, &ring, 0);
    if (error < 0) {
        fprintf(stderr, "serve: no io_uring on this system (error %d)\n", -error);
        tutti_finalize(world);
        return 77;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0
        || pthread_create(&thread, NULL, client, &fds[1]) != 0)
        return 1;
    listen_again(&ring, fds[0], &byte);
    if (add_up(&ring, give, sum, world, &work) < 0) return stop(world);
    for (int through = 0; !through;) {               /* until all ranks are */
        struct io_uring_cqe *cqe;
        io_uring_submit_and_wait(&ring, 1);
        while (io_uring_peek_cqe(&ring, &cqe) == 0) {
            uint64_t what = io_uring_cqe_get_data64(cqe);
            int result = cqe->res;
            io_uring_cqe_seen(&ring, cqe);
            if (what == REQUEST && result == 1) {
                served++;
                if (write(fds[0], &all, sizeof all) != sizeof all) return 1;
                listen_again(&ring, fds[0], &byte);
            } else if (what == SUM) {
                if (tutti_wait(work, 0) < 0) return stop(world);
                all = sum[0];
                sums++;
                give[0] = served;
                give[1] = served == REQUESTS;
                through = sum[1] == tutti_size(world);
                if (!through && add_up(&ring, give, sum, world, &work) < 0) return stop(world);
            }
        }
    }
    pthread_join(thread, NULL);
    if (tutti_rank(world) == 0)
        printf("%d ranks served %ld requests, and added up %ld times beside that\n",
               tutti_size(world), all, sums);
    io_uring_queue_exit(&ring);
    int right = all == (long)REQUESTS * tutti_size(world);
    return tutti_finalize(world) == 0 && right ? 0 : 1;
}
