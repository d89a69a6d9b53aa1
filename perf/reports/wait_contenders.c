/* Each call is one wait, with what it takes to end it on the late rank. Keys are new each time,
 * and the late rank deletes an old one, which nobody asks for any more. */
#include "reports/wait_contenders.h"

#include <errno.h>
#include <stdio.h>

enum { TAG = 7, KEPT = 4, KEY_BYTES = 32 };

int waits_handle(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0) {
        tutti_work *work = NULL;
        error = tutti_barrier(r->comm, &(tutti_call){ .work = &work });
        if (error == 0)
            error = tutti_wait(work, -1);
    }
    return error;
}

static int sends(struct rank *r)
{
    int value = 0, error = 0;
    for (int to = 0; to < r->size && error == 0; to++)
        if (to != r->me)
            error = tutti_send(&value, 1, TUTTI_I32, to, TAG, r->comm, NULL);
    return error;
}

int waits_receive(struct rank *r, uint64_t times)
{
    int value, error = 0;
    while (times-- && error == 0)
        error = r->late == r->me
            ? sends(r)
            : tutti_recv(&value, 1, TUTTI_I32, r->late, TAG, NULL, r->comm, NULL);
    return error;
}

int waits_letter(struct rank *r, uint64_t times)
{
    int value, error = 0;
    while (times-- && error == 0) {
        tutti_work *work = NULL;
        error = r->late == r->me ? sends(r)
                                 : tutti_recv(&value, 1, TUTTI_I32, r->late, TAG, NULL, r->comm,
                                              &(tutti_call){ .work = &work });
        if (error == 0 && work)
            error = tutti_wait(work, -1);
    }
    return error;
}

static void key_name(char to[KEY_BYTES], const char *what, uint64_t nth)
{
    snprintf(to, KEY_BYTES, "%s %llu", what, (unsigned long long)nth);
}

int waits_get(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0) {
        char name[KEY_BYTES], value[1];
        size_t bytes = sizeof value;
        key_name(name, "wait", ++r->nth[0]);
        if (r->late != r->me) {
            error = tutti_get(name, value, &bytes, r->comm, NULL);
            continue;
        }
        error = tutti_set(name, "1", 1, r->comm);
        key_name(name, "wait", r->nth[0] - KEPT);
        tutti_delete(name, r->comm);                 /* of the first few there are none */
    }
    return error;
}

int waits_turn(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0) {
        error = tutti_turn_begin(r->comm, NULL);
        if (error == 0)
            error = tutti_turn_end(r->comm);
    }
    return error;
}

static int comes(void *arg)
{
    struct rank *r = arg;
    if (r->late == r->me)
        r->come(r);
    return 0;
}

int waits_once(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0) {
        char name[KEY_BYTES];
        key_name(name, "once", ++r->nth[0]);
        error = tutti_once(name, comes, r, r->comm, NULL);
    }
    return error;
}

int waits_first(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error >= 0) {
        error = tutti_first_begin("first", r->comm, NULL);
        if (error == 1)
            error = tutti_first_end("first", comes(r), r->comm);
    }
    return error < 0 ? error : 0;
}
