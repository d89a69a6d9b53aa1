/* Job: take the kernel's list of robust locks away from this thread, for tests of deaths that the
 *      kernel does not mark.
 * Owns: nothing.
 * Never: gives the list back. */
#ifndef TUTTI_TEST_SUPPORT_ROBUST_LIST_H
#define TUTTI_TEST_SUPPORT_ROBUST_LIST_H

/* As by a library that has a list of robust locks of its own: when this thread dies, the kernel
 * marks no lock of the C library's. A kernel that knows no such list marks none anyway. */
void robust_list_replace(void);

#endif
