/* A rank looks before it binds, so two ranks do not host two worlds. The kernel binds a name
 * atomically: the second rank gets EADDRINUSE and looks again. A rank waits only for a name to
 * appear or for a host to answer, until the deadline.
 * Cost of joining: below 1 ms. Eight connects, seven of them refused at once; two messages; one
 * map. */
#include "group/meet.h"

#include "arena/offsets.h"
#include "base/error.h"
#include "group/elsewhere.h"
#include "os/handover.h"
#include "os/own_file.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DOUBT_NS UINT64_C(500000000)
#define NEARLY_NS UINT64_C(100000000)
/* room for ".full" and a byte 0 */
enum { PAUSE_NS = 200000, EXIT_MS = 20, NAME_MOST = MEET_NAME - 6 };

static void pause_briefly(void) { nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL); }

static int left_ms(const struct meeting *m)
{
    uint64_t now = clock_ns(), end = m->gather.end_ns;
    if (end == UINT64_MAX)
        return -1;
    uint64_t ms = now >= end ? 0 : (end - now + 999999) / 1000000;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static bool too_late(const struct meeting *m) { return clock_ns() >= m->gather.end_ns; }

/* A name too long for a socket becomes its beginning and a hash of the whole. */
static void make_names(struct meeting *m)
{
    char base[MEET_NAME];
    struct text t = TEXT_IN(base);
    text_clear(&t);
    text_add_name(&t, m->request->name, NAME_MOST);
    m->candidates = MEET_CANDIDATES;
    for (int i = 0; i < MEET_CANDIDATES; i++) {
        struct text one = TEXT_IN(m->name[i]);
        text_add(&one, "%s.%d", base, i);
    }
    if (handover_private(base, m->name[MEET_CANDIDATES], sizeof m->name[0]) == 0)
        m->candidates++;
    struct text marker = TEXT_IN(m->marker);
    text_add(&marker, "%s.full", base);
}

/* Names the marker by path, device and inode: the same path may be another directory elsewhere. */
static void mark_path(struct meeting *m)
{
    char directory[MEET_NAME];
    struct stat st;
    strcpy(directory, m->name[0]);
    char *slash = strrchr(directory, '/');
    slash[slash == directory] = 0;
    if (stat(directory, &st) != 0)
        return;
    const uint64_t where[2] = { (uint64_t)st.st_dev, (uint64_t)st.st_ino };
    uint64_t hash = text_hash(m->name[0], strlen(m->name[0]), text_hash(where, sizeof where, 0));
    struct text marker = TEXT_IN(m->marker);
    text_add(&marker, "tutti.%u.path.%016llx.full", (unsigned)geteuid(), (unsigned long long)hash);
}

static int make_path(struct meeting *m)
{
    if (strlen(m->request->name) >= MEET_NAME) {
        text_add(m->why, "the meeting path %.200s is too long: %zu characters; %d are the most",
                 m->request->name, strlen(m->request->name), MEET_NAME - 1);
        return -ENAMETOOLONG;
    }
    m->candidates = 1;
    strcpy(m->name[0], m->request->name);
    mark_path(m);
    return 0;
}

/* A pidfd of the process that listens behind this connection. -ESRCH: it is dead. Other errors: not
 * known. */
static int host_process(int fd)
{
    struct handover_peer peer;
    if (handover_peer(fd, &peer) < 0 || peer.pid <= 0)
        return -EXDEV;
    return process_pidfd(&(struct process_id){ .pid = peer.pid });
}

static bool hung_up(int fd)
{
    struct pollfd p = { fd, POLLIN, 0 };
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLIN));
}

/* True: the host is dead, and a forked child keeps its socket listening: no answer will come. */
static bool orphaned(int fd)
{
    int pidfd = host_process(fd);
    struct pollfd p = { pidfd, POLLIN, 0 };
    bool dead = pidfd >= 0 ? poll(&p, 1, 0) > 0 : pidfd == -ESRCH;
    if (pidfd >= 0)
        close(pidfd);
    return dead && !hung_up(fd);
}

int meet_try(struct meeting *m, const char *name)
{
    struct handover_peer peer;
    int fd = handover_connect(name);
    if (fd < 0)
        return fd;
    int error = handover_peer(fd, &peer);
    bool ours = error == 0 && peer.uid == geteuid();
    if (ours && !orphaned(fd))
        return fd;
    close(fd);
    if (error || ours)
        return -EAGAIN;
    strcpy(m->stranger, name);
    m->stranger_uid = peer.uid;
    return -EPERM;
}

const char *meet_remedy(int error)
{
    return error == -EMFILE || error == -ENFILE ? " (raise ulimit -n, or close some descriptors)"
                                                : "";
}

/* Called when this candidate can be neither joined nor bound. True: since DOUBT_NS, so it is not
   ours. A rank of ours is so for a moment only: between bind and listen, or with a full backlog. If
   this is wrong, the two hosts find each other (host.c). */
static bool doubtful(struct meeting *m, int i)
{
    uint64_t now = clock_ns();
    if (m->doubt_ns[i] == 0)
        m->doubt_ns[i] = now;
    if (m->candidates == 1 || now - m->doubt_ns[i] < DOUBT_NS)
        return false;
    strcpy(m->stranger, m->name[i]);
    m->stranger_uid = (uid_t)-1;
    return true;
}

/* A connection to the first candidate that is ours, or -1. *vacant: the first free candidate, or
 * -1. *busy: a candidate must be asked again. */
static int look(struct meeting *m, int *vacant, bool *busy, int *hard)
{
    *vacant = -1;
    *busy = false;
    *hard = 0;
    for (int i = 0; i < m->candidates; i++) {
        int fd = meet_try(m, m->name[i]);
        if (fd >= 0)
            return fd;
        if (fd == -ECONNREFUSED) {
            if (*vacant < 0 && !(m->doubt_ns[i] && doubtful(m, i)))
                *vacant = i;
        } else if (fd == -EAGAIN || fd == -EINTR || fd == -ECONNRESET)
            *busy |= !doubtful(m, i);
        else if (fd != -EPERM)
            *hard = fd == -EACCES ? -EPERM : fd;        /* a path whose socket is another user's */
    }
    return -1;
}

static int say_hello(const struct meeting *m, int fd)
{
    struct meet_hello hello = {
        .magic = MEET_MAGIC, .bytes = sizeof hello, .layout_hash = layout_hash(),
        .rank = m->request->rank, .size = m->request->size, .pid = (int32_t)getpid()
    };
    struct text version = TEXT_IN(hello.version);
    text_add(&version, "%s", arena_version());
    return handover_send(fd, &hello, sizeof hello, -1, left_ms(m));
}

static int host_died(struct meeting *m, int fd)
{
    struct handover_peer peer = { 0 };
    handover_peer(fd, &peer);
    text_add(m->why, "the rank that hosts the meeting (pid %d) died while the ranks were joining",
             (int)peer.pid);
    return -EOWNERDEAD;
}

/* The connection ended without an answer. -EAGAIN: the host lives; it gave way to another, or its
   world is full. A dead host took the arena with it: the ranks in it report a death, so this one
   does, too. The process ends some moments after its sockets. */
static int host_went(struct meeting *m, int fd)
{
    int pidfd = host_process(fd);
    struct pollfd p = { pidfd, POLLIN, 0 };
    bool dead = pidfd >= 0 ? poll(&p, 1, EXIT_MS) > 0 : pidfd == -ESRCH;
    if (pidfd >= 0)
        close(pidfd);
    if (!dead)
        return -EAGAIN;
    return host_died(m, fd);
}

/* Waits until the host has answered or hung up: 0; -ETIMEDOUT; -EOWNERDEAD: it is dead and left no
   answer. The connection alone does not show a death: a fork of the host may keep it open. */
static int await_host(const struct meeting *m, int fd)
{
    int pidfd = host_process(fd), ready;
    struct pollfd p[2] = { { fd, POLLIN, 0 }, { pidfd, POLLIN, 0 } };
    do
        ready = poll(p, 2, left_ms(m));
    while (ready < 0 && errno == EINTR);
    if (pidfd >= 0)
        close(pidfd);
    if (ready == 0)
        return -ETIMEDOUT;
    return p[0].revents || poll(p, 1, 0) > 0 ? 0 : -EOWNERDEAD;
}

/* 0 with the arena's descriptor; the host's refusal with its sentence; -EAGAIN: look again. */
static int hear_answer(struct meeting *m, int fd, struct meet_answer *answer, int *arena_fd)
{
    int got = await_host(m, fd);
    if (got == -EOWNERDEAD)
        return host_died(m, fd);
    got = handover_recv(fd, answer, sizeof *answer, arena_fd, 0);
    if (got == -ECONNRESET)
        return host_went(m, fd);
    if (got == -ETIMEDOUT || got == -EAGAIN)
        return -EAGAIN;
    if (got < 0) {
        text_add(m->why, "the arena's descriptor did not arrive: %s%s", error_text(got),
                 meet_remedy(got));
        return got;
    }
    /* an acceptance has a descriptor, a refusal an errno and a sentence */
    bool whole = got == (int)sizeof *answer && answer->magic == MEET_MAGIC;
    bool refused = whole && answer->status < 0 && answer->status > -4096 && answer->text[0];
    if (whole && answer->status == 0 && *arena_fd >= 0)
        return 0;
    if (*arena_fd >= 0)
        close(*arena_fd);
    if (refused && answer->status == -EAGAIN)
        return -EAGAIN;
    if (!refused) {
        text_add(m->why, "whoever meets at %.200s is no tutti of this kind", m->request->name);
        return -EPROTO;
    }
    text_add(m->why, "%.*s", MEET_TEXT, answer->text);
    if (!strncmp(answer->text, "two builds ", strlen("two builds "))) {  /* as host.c says it */
        text_add(m->why, ", this rank from ");
        own_file(m->why);
        text_add(m->why, ": let both load the same one (LD_LIBRARY_PATH, virtual environments)");
    }
    return answer->status;
}

/* The host closes its connections only after the end is decided. If ours closes before that, the
 * host has died. */
static int wait_with_host(struct meeting *m, int fd, const struct meet_answer *answer)
{
    for (;;) {
        bool closed = hung_up(fd);
        int end = assemble_wait(&m->gather);
        if (end == ASSEMBLE_GOING && closed)
            end = assemble_fail(&m->gather, (uint32_t)answer->host_rank);
        if (end != ASSEMBLE_GOING)
            return end;
    }
}

int meet_end(const struct meeting *m, int end)
{
    uint64_t now = clock_ns(), end_ns = m->gather.end_ns, left = end_ns > now ? end_ns - now : 0,
             tenth = (uint64_t)m->gather.timeout_ms * 100000;
    if (end != -ETIMEDOUT || left == 0)
        return end;
    if (left > (tenth < NEARLY_NS ? tenth : NEARLY_NS))
        return -EAGAIN;
    for (struct timespec rest = { 0, (long)left };
         nanosleep(&rest, &rest) != 0 && errno == EINTR;) {
    }
    return end;
}

void meet_look_elsewhere(const struct meeting *m)
{
    if (m->candidates > 1)
        elsewhere_look(m->arena, m->name[0]);
}

void meet_leave(struct meeting *m, int error)
{
    if (error == -ETIMEDOUT)
        meet_look_elsewhere(m);
    if (error == -EOWNERDEAD || error == -ETIMEDOUT)
        assemble_explain(&m->gather, error, m->why);
    if (error == -EAGAIN) {
        assemble_again(&m->gather);
        /* the names in doubt before belonged to this meeting */
        memset(m->doubt_ns, 0, sizeof m->doubt_ns);
    }
    seat_leave(m->arena, m->request->rank);
}

int meet_drop(struct meeting *m, int error)
{
    meet_leave(m, error);
    arena_detach(m->arena);
    return error;
}

static int sit(struct meeting *m, int fd, const struct meet_answer *answer)
{
    const struct join_request *r = m->request;
    if (m->arena->header->size != (uint32_t)r->size || answer->host_rank < 0
        || answer->host_rank >= r->size) {
        text_add(m->why, "the arena that was handed over has %u ranks, not %d",
                 m->arena->header->size, r->size);
        arena_detach(m->arena);
        return -EPROTO;
    }
    int error = seat_take(m->arena, (uint32_t)r->rank, &m->card, m->why);
    if (error) {
        arena_detach(m->arena);
        return error;
    }
    assemble_seated(&m->gather);
    /* wakes the host early; it would also see our seat at the end of its slice */
    handover_send(fd, "s", 1, -1, 0);
    int end = meet_end(m, wait_with_host(m, fd, answer));
    return end == ASSEMBLE_DONE ? 0 : meet_drop(m, end);
}

static int join_host(struct meeting *m, int fd)
{
    struct meet_answer answer;
    int arena_fd = -1;
    if (say_hello(m, fd) < 0)
        return host_went(m, fd);
    int error = hear_answer(m, fd, &answer, &arena_fd);
    if (error)
        return error;
    error = arena_attach(m->arena, arena_fd, m->why);
    if (error) {
        close(arena_fd);
        return error;
    }
    m->gather.arena = m->arena;
    return sit(m, fd, &answer);
}

static void add_stranger(const struct meeting *m)
{
    if (m->stranger[0] && m->stranger_uid == (uid_t)-1)
        text_add(m->why, " (the meeting name %s is held by somebody who does not answer)",
                 m->stranger);
    else if (m->stranger[0])
        text_add(m->why, " (the meeting name %s is held by user %u)", m->stranger,
                 (unsigned)m->stranger_uid);
}

static int nobody_answers(struct meeting *m)
{
    text_add(m->why, "rank %d found nobody to meet at %.200s, nor could it host", m->request->rank,
             m->request->name);
    refused_explain(&m->gather.refused, NULL, m->why);
    add_stranger(m);
    return -ETIMEDOUT;
}

static int bind_and_host(struct meeting *m, int at, int *host_fd)
{
    int error = meet_late(m);
    if (error)
        return error;
    int listener = handover_listen(m->name[at]);
    if (listener == -EADDRINUSE) {
        doubtful(m, at);
        return -EAGAIN;
    }
    if (listener < 0) {
        text_add(m->why, "no socket can be bound at %s: %s%s", m->name[at], error_text(listener),
                 meet_remedy(listener));
        return listener;
    }
    return meet_host(m, listener, at, host_fd);
}

static int meet_once(struct meeting *m, int *host_fd)
{
    int vacant, hard;
    bool busy;
    int fd = look(m, &vacant, &busy, &hard);
    if (fd >= 0) {
        int error = join_host(m, fd);
        close(fd);
        return error;
    }
    if (busy)
        return -EAGAIN;
    if (vacant >= 0)
        return bind_and_host(m, vacant, host_fd);
    if (hard)
        text_add(m->why, "no meeting at %s: %s%s", m->name[0], error_text(hard), meet_remedy(hard));
    else
        text_add(m->why,
                 "every meeting name of %.200s is another user's, and there is no directory for "
                 "this user alone: set TUTTI_MEET "
                 "to a path",
                 m->request->name);
    add_stranger(m);
    return hard ? hard : -EPERM;
}

int meet_world(struct meeting *m, int *host_fd)
{
    int error = 0;
    m->stranger[0] = m->marker[0] = 0;
    memset(m->doubt_ns, 0, sizeof m->doubt_ns);
    if (m->request->name[0] == '/')
        error = make_path(m);
    else
        make_names(m);
    if (error)
        return error;
    for (;;) {
        error = meet_once(m, host_fd);
        if (error == -ETIMEDOUT)
            add_stranger(m);
        if (error != -EAGAIN)
            return error;
        if (too_late(m))
            return nobody_answers(m);
        pause_briefly();
    }
}
