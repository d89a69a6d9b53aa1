/* Job: a directory of small files for one test, removed at its end.
 * Owns: the directory.
 * Never: what the files stand for. */
#ifndef TUTTI_TEST_OS_TREE_H
#define TUTTI_TEST_OS_TREE_H

struct tree { char root[64]; };

void tree_begin(struct tree *tree);
/* makes the directories on the way */
void tree_file(const struct tree *tree, const char *path, const char *content);
void tree_end(struct tree *tree);

#endif
