/* Job: pass a descriptor from one process to another of the same user, met by name.
 * Owns: the sockets it returns, given to the caller.
 * Never: what the descriptor is for.
 * Names starting with '/' are paths (sockets on disk, unlinked by the listener's close); all others
 * are abstract. */
#ifndef TUTTI_OS_HANDOVER_H
#define TUTTI_OS_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* SOCK_SEQPACKET, CLOEXEC, non-blocking. Descriptor or -errno: listen: -EADDRINUSE; connect:
 * -ECONNREFUSED (nobody there), -EAGAIN (backlog full). */
int handover_listen(const char *name);
int handover_connect(const char *name);
int handover_accept(int listener);           /* descriptor, -EAGAIN, -errno */
/* nobody can connect any more; those who have can still be accepted, until the close */
void handover_deafen(int listener, const char *name);
/* a listener on a path gives its name: it is unlinked */
void handover_close(int fd, const char *name_or_null);

/* A path for this name in a directory that this user alone can write to ($XDG_RUNTIME_DIR, or
   $HOME), other on each boot and in each network namespace, as abstract names are. 0, or -ENOENT:
   there is no such directory; -ENAMETOOLONG. */
int handover_private(const char *name, char *path, size_t room);

/* Without a meeting: a box under an abstract name, and a way into it. Messages wait there until
   they are received, some ten at least; who sends into a full one gets -EAGAIN. What comes from
   another user than this one and root is refused: -EPERM. Descriptor or -errno, as above. */
int handover_box(const char *name);
int handover_into(const char *name);

struct handover_peer { pid_t pid; uid_t uid; };
int handover_peer(int fd, struct handover_peer *peer);   /* SO_PEERCRED */

/* One message of up to 4096 bytes, with at most one descriptor (fd < 0: none). timeout_ms for the
 * whole call. 0 or -errno. */
int handover_send(int fd, const void *bytes, size_t n, int pass_fd, int timeout_ms);
/* Received length, or -errno (-EAGAIN/-ETIMEDOUT nothing in time; 0-length end of stream:
 * -ECONNRESET). *got_fd = -1 if none came; surplus descriptors are closed. */
int handover_recv(int fd, void *bytes, size_t room, int *got_fd, int timeout_ms);

#endif
