/* Job: make the functions of the public headers visible from outside; the library is built with
 *      hidden visibility.
 * Owns: nothing.
 * Never: holds code. The build puts this file in front of every source of the library, so that no
 *        definition can miss it. */
#ifndef TUTTI_API_VISIBLE_H
#define TUTTI_API_VISIBLE_H

#define TUTTI_NO_SITES                /* the functions are defined here, under their own names */
#pragma GCC visibility push(default)
#include <tutti_cuda.h>
#include <tutti_uring.h>
#pragma GCC visibility pop
#undef TUTTI_NO_SITES

#endif
