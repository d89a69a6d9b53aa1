#include <stddef.h>
typedef struct tutti_comm tutti_comm;
typedef struct tutti_options { int (*interrupt)(void *arg); size_t bytes; } tutti_options;
typedef int (*tutti_callback)(void *arg);
typedef struct tutti_call { int timeout; } tutti_call;
enum { TUTTI_KEEP = 1 };
#ifdef __cplusplus
extern "C" {
#endif
const char *tutti_version(void);
int tutti_barrier(tutti_comm *comm,
                  const tutti_options *options);
int tutti_barrier_at(const char *site, tutti_comm *comm, const tutti_options *options);
int tutti_spawn(int size, int (*fn)(tutti_comm *world, void *arg), void *arg);
int tutti_missing (void);
int tutti_scan(tutti_comm *comm, const tutti_call *call);
int tutti_scan_at(const char *site, tutti_comm *comm, const tutti_call *call);
int tutti_gather(tutti_comm *comm, const tutti_call *call);
int tutti_free_at(const char *site, void *block);
#ifndef TUTTI_NO_SITES
#define tutti_barrier(...) tutti_barrier_at("here", __VA_ARGS__)
#define tutti_spawn(...) tutti_spawn_at("here", __VA_ARGS__)
#endif
#ifdef __cplusplus
}
#endif
