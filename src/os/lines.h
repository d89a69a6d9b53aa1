/* Job: let what a program prints leave it line by line.
 * Owns: how the C library buffers stdout, from the library's start on.
 * Never: writes anything. */
#ifndef TUTTI_OS_LINES_H
#define TUTTI_OS_LINES_H

/* Stands in each program that calls tutti_init: the constructor comes with it. */
void lines_here(void);

#endif
