/* archive INIT FILE...: an archive for a kernel to start from (cpio, format newc) on standard
 * output: INIT as /init, each FILE where it lies here. For want of cpio(1), which few
 * machines have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void fill(size_t n)
{
    for (; n % 4; n++)
        putchar(0);
}

static void entry(const char *name, unsigned mode, const char *data, size_t bytes, unsigned major,
                  unsigned minor)
{
    static unsigned number;
    size_t length = strlen(name) + 1;
    printf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ++number, mode, 0u, 0u, 1u,
           0u, (unsigned)bytes, 0u, 0u, major, minor, (unsigned)length, 0u);
    fwrite(name, 1, length, stdout);
    fill(110 + length);
    fwrite(data, 1, bytes, stdout);
    fill(bytes);
}

/* Twice the same folder does no harm: the kernel keeps the one that is there. */
static void folders(const char *path)
{
    char name[4096];
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        snprintf(name, sizeof name, "%.*s", (int)(end - path), path);
        entry(name, S_IFDIR | 0755, "", 0, 0, 0);
    }
}

static int file(const char *from, const char *name)
{
    struct stat st;
    FILE *f = fopen(from, "re");
    char *data = f && fstat(fileno(f), &st) == 0 ? malloc((size_t)st.st_size) : NULL;
    if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        perror(from);
        return 1;
    }
    folders(name);
    entry(name, S_IFREG | 0755, data, (size_t)st.st_size, 0, 0);
    free(data);
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s INIT FILE... >ARCHIVE\n", argv[0]);
        return 2;
    }
    entry("dev", S_IFDIR | 0755, "", 0, 0, 0);
    entry("dev/console", S_IFCHR | 0600, "", 0, 5, 1);
    int failed = file(argv[1], "init");
    for (int i = 2; i < argc && !failed; i++)
        failed = file(argv[i], argv[i] + (argv[i][0] == '/'));
    entry("TRAILER!!!", 0, "", 0, 0, 0);
    return failed || fflush(stdout) != 0;
}
