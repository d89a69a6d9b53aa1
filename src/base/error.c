/* One table: the kinds of failure that our calls can return, in the words of the contract. Other
 * errors come from the system (a file, a device), and have the system's words. A search walks over
 * some twenty rows, for a report that a person will read: no index. */
#include "base/error.h"

#include "base/system_names.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

struct error_row { int code; const char *name, *text; };

static const struct error_row rows[] = {
    { 0, "0", "success" },
    { EOWNERDEAD, "EOWNERDEAD", "a rank died or left" },
    { ETIMEDOUT, "ETIMEDOUT", "the deadline passed" },
    { EPROTO, "EPROTO", "the ranks called different things" },
    { ECANCELED, "ECANCELED", "a rank aborted, or the comm is broken by an earlier failure" },
    { EDEADLK, "EDEADLK", "a wait that can never end" },
    { EINVAL, "EINVAL", "a bad argument" },
    { EBUSY, "EBUSY", "another thread is inside this comm, or work is under way" },
    { EAGAIN, "EAGAIN", "not done yet" },
    { EINTR, "EINTR", "the interrupt function said stop" },
    { EPERM, "EPERM", "not yours to join" },
    { ECHILD, "ECHILD", "the caller is a fork of a rank, not the rank" },
    { EXDEV, "EXDEV", "the ranks are not on one host" },
    { EMSGSIZE, "EMSGSIZE", "the message or value does not fit" },
    { ESHUTDOWN, "ESHUTDOWN", "the queue is closed, and all that was put is read" },
    { ENOTSUP, "ENOTSUP", "not supported here" },
    { ENOMEM, "ENOMEM", "out of memory" },
};

/* INT_MIN has no positive counterpart, and is no error. */
static int positive(int error)
{
    if (error == INT_MIN)
        return INT_MAX;
    return error < 0 ? -error : error;
}

static const struct error_row *find(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *error_text(int error)
{
    int code = positive(error);
    const struct error_row *row = find(code);
    const char *text = row ? row->text : system_error_text(code);
    return text ? text : "unknown error";
}

const char *error_system(int error)
{
    const char *text = system_error_text(positive(error));
    return text ? text : "unknown error";
}

const char *error_name(int error)
{
    int code = positive(error);
    const struct error_row *row = find(code);
    const char *name = row ? row->name : system_error_name(code);
    return name ? name : "E?";
}
