#include "leftovers.h"

#include <dirent.h>
#include <string.h>

int leftovers_of_save(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = dir ? 0 : -1;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        n += strstr(e->d_name, "tutti-save") != NULL;
    if (dir)
        closedir(dir);
    return n;
}
