/* Job: what a failed tutti_save has left in a folder.
 * Owns: nothing.
 * Never: takes it away. */
#ifndef TUTTI_TEST_SUPPORT_LEFTOVERS_H
#define TUTTI_TEST_SUPPORT_LEFTOVERS_H

int leftovers_of_save(const char *folder);  /* how many such files; -1: the folder cannot be read */

#endif
