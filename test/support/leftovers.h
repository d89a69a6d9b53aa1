/* Job: find what a failed tutti_save has left in a folder.
 * Owns: nothing.
 * Never: removes it. */
#ifndef TUTTI_TEST_SUPPORT_LEFTOVERS_H
#define TUTTI_TEST_SUPPORT_LEFTOVERS_H

int leftovers_of_save(const char *folder);  /* number of such files; -1: cannot read the folder */

#endif
