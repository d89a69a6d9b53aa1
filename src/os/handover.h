/* Job: pass a descriptor to another process of the same user, which is found by name.
 * Owns: nothing; the caller owns the sockets.
 * Never: knows what the descriptor is for.
 * A name that begins with '/' is a path: a socket on disk, which the listener's close unlinks. All
 * others are abstract. */
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
/* Refuses new connections. Those made before can be accepted until the close. */
void handover_deafen(int listener, const char *name);
/* name: of a listener on a path, which is unlinked; else NULL. */
void handover_close(int fd, const char *name_or_null);

/* A path for this name in a directory that only this user can write ($XDG_RUNTIME_DIR, or $HOME).
   It differs on each boot and in each network namespace, as abstract names do. 0. -ENOENT: there is
   no such directory. -ENAMETOOLONG. */
int handover_private(const char *name, char *path, size_t room);

/* box: a datagram socket under an abstract name; into: a sender to it. At least some ten messages
   wait there; a send into a full box is -EAGAIN. A message of another user, but root, is refused:
   -EPERM. Descriptor or -errno, as above. */
int handover_box(const char *name);
int handover_into(const char *name);

struct handover_peer { pid_t pid; uid_t uid; };
int handover_peer(int fd, struct handover_peer *peer);   /* SO_PEERCRED */

/* One message of up to 4096 bytes, with at most one descriptor (fd < 0: none). timeout_ms for the
 * whole call. 0 or -errno. */
int handover_send(int fd, const void *bytes, size_t n, int pass_fd, int timeout_ms);
/* Received length, or -errno. -EAGAIN, -ETIMEDOUT: nothing in time. -ECONNRESET: end of stream.
 * *got_fd: -1 if none came; surplus descriptors are closed. */
int handover_recv(int fd, void *bytes, size_t room, int *got_fd, int timeout_ms);

#endif
