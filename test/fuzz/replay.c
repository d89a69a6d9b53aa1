/* Runs a target over the files of a folder, for compilers without libFuzzer: what has once been
 * found stays tried. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int replay(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &st) != 0) {
        perror(path);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    /* exactly as long: a sanitizer sees the first byte behind */
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        perror(path);
        fclose(file);
        free(data);
        return -1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            char path[4096];
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay(path) < 0)
                return 1;
            files++;
        }
        closedir(folder);
    }
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("%d inputs of the corpus replayed\n", files);
    return files ? 0 : 1;
}
