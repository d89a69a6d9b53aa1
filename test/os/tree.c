/* mkdtemp, and a removal that goes no deeper than what was made here: nftw without
 * following links. */
#include "tree.h"
#include "support/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void must(int condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    abort();
}

void tree_begin(struct tree *tree)
{
    must(mkdtemp(scratch_name(tree->root, sizeof tree->root, "tree")) != NULL, "mkdtemp");
}

void tree_file(const struct tree *tree, const char *path, const char *content)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", tree->root, path);
    for (char *slash = full + strlen(tree->root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "we");
    must(f != NULL && fputs(content, f) >= 0 && fclose(f) == 0, full);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void tree_end(struct tree *tree)
{
    must(nftw(tree->root, drop, 8, FTW_DEPTH | FTW_PHYS) == 0, tree->root);
}
