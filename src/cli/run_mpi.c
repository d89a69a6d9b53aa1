/* Each MPI has a launcher of its own, and ranks that another one starts do not find each other. So
 * the program's loader is asked which libmpi the program will have (as ldd does, but without ever
 * running the program), and mpirun is looked for around that library. A program that loads its MPI
 * later, as Python does, gets the mpirun of PATH. */
#include "cli/run_mpi.h"

#include "launch/program.h"
#include "os/cpu.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 2 * PATH_MAX, UP_MOST = 4, OPTIONS_MOST = 8 };

static const struct { const char *soname, *own; } known[] = {
    { "libmpi.so.40", "mpirun.openmpi" }, { "libmpich.so.12", "mpirun.mpich" },
    { "libmpi.so.12", "mpirun.mpich" },
};
enum { KNOWN = sizeof known / sizeof known[0] };

/* The program's loader. 1: it has one; 0: it is static; -1: it is no program of this machine, a
 * script perhaps. */
static int loader_of(const char *path, char loader[PATH_MAX])
{
    Elf64_Ehdr head;
    Elf64_Phdr part;
    int found = -1, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (pread(fd, &head, sizeof head, 0) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)
        && head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof part)
        found = 0;
    for (int i = 0; found == 0 && i < head.e_phnum; i++) {
        off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != sizeof part)
            break;
        if (part.p_type != PT_INTERP || part.p_filesz > PATH_MAX - 1)
            continue;
        ssize_t n = pread(fd, loader, part.p_filesz, (off_t)part.p_offset);
        loader[n > 0 ? n : 0] = 0;
        found = n > 0;
    }
    close(fd);
    return found;
}

/* What a program prints, to be read; *child is to be waited for. NULL: it could not be started. */
static FILE *output_of(const char *path, const char *option, const char *argument, pid_t *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return NULL;
    *child = fork();
    if (*child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(path, path, option, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *f = *child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!f)
        close(ends[0]);
    return f;
}

static void output_end(FILE *f, pid_t child)
{
    if (f)
        fclose(f);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) { }
}

/* By what it says of itself; Hydra's launchers need no options. */
static bool is_open_mpi(const char *launcher)
{
    char line[ROOM];
    pid_t child = 0;
    bool said = false;
    FILE *f = output_of(launcher, "--version", NULL, &child);
    while (f && fgets(line, sizeof line, f))
        said |= strstr(line, "open-mpi.org") != NULL;
    output_end(f, child);
    return said;
}

/* Which of `known` the program will load, and from where; -1: none. */
static int library_of(const char *loader, const char *path, char library[PATH_MAX])
{
    int found = -1;
    char line[ROOM], name[256], where[PATH_MAX];
    pid_t child = 0;
    FILE *f = output_of(loader, "--list", path, &child);
    while (f && fgets(line, sizeof line, f))
        for (int i = 0; i < KNOWN; i++)
            if (sscanf(line, " %255s => %4095s", name, where) == 2
                && !strcmp(name, known[i].soname) && where[0] == '/') {
                found = i;
                if (!realpath(where, library))
                    found = -1;
            }
    output_end(f, child);
    return found;
}

/* mpirun in a folder bin, up to four levels above the library. Its own name goes before mpirun. */
static bool launcher_by(const char *library, const char *own, char *path)
{
    const char *const names[] = { own, "mpirun" };
    for (int n = 0; n < 2; n++) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s", library);
        for (int up = 0; up < UP_MOST + 1; up++) {
            char *slash = strrchr(folder, '/');
            if (!slash)
                break;
            *slash = 0;
            if (snprintf(path, ROOM, "%s/bin/%s", folder, names[n]) < ROOM
                && access(path, X_OK) == 0)
                return true;
        }
    }
    return false;
}

static bool preload_of(char *path)
{
    static const char *const where[] = { ".", TUTTI_TO_LIB };
    char here[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    here[n > 0 ? n : 0] = 0;
    const char *folder = dirname(here);
    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        snprintf(path, ROOM, "%s/%s/libtutti-mpi.so", folder, where[i]);
        char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
        if (real) {
            snprintf(path, ROOM, "%s", real);
            free(real);
            return true;
        }
    }
    return false;
}

static int start(const char *launcher, bool open_mpi, int size, const char *preload, bool verbose,
                 char **argv)
{
    char number[16], *words[OPTIONS_MOST + 1], *all = NULL;
    const char *before = getenv("LD_PRELOAD");
    int n = 0, own = 0;
    snprintf(number, sizeof number, "%d", size);
    if (asprintf(&all, "%s%s%s", preload, before && *before ? ":" : "", before ? before : "") < 0)
        all = NULL;
    words[n++] = (char *)(uintptr_t)launcher;
    words[n++] = (char *)(uintptr_t)"-n";
    words[n++] = number;
    if (open_mpi) {
        words[n++] = (char *)(uintptr_t)"-x";
        words[n++] = (char *)(uintptr_t)"LD_PRELOAD";
        if (geteuid() == 0)
            words[n++] = (char *)(uintptr_t)"--allow-run-as-root";
        if (size > cpu_allowed())
            words[n++] = (char *)(uintptr_t)"--oversubscribe";
    }
    while (argv[own])
        own++;
    char **line = calloc((size_t)(n + own) + 1, sizeof *line);
    if (!line || !all || setenv("LD_PRELOAD", all, 1) < 0) {
        fprintf(stderr, "tutti run: no memory for a command line\n");
        return 1;
    }
    memcpy(line, words, (size_t)n * sizeof *line);
    memcpy(line + n, argv, (size_t)own * sizeof *line);
    if (verbose) {
        fprintf(stderr, "tutti run: LD_PRELOAD=%s", all);
        for (int i = 0; line[i]; i++)
            fprintf(stderr, " %s", line[i]);
        fputc('\n', stderr);
    }
    execv(launcher, line);
    fprintf(stderr, "tutti run: %s: %s\n", launcher, strerror(errno));
    return 127;
}

int run_mpi(int size, bool verbose, char **argv)
{
    char path[PATH_MAX], loader[PATH_MAX], library[PATH_MAX], launcher[ROOM], preload[ROOM];
    int which = -1, r = program_find(path, sizeof path, argv[0]);
    if (r < 0) {
        fprintf(stderr, "tutti run: %s: %s\n", argv[0], strerror(-r));
        return r == -EACCES ? 126 : 127;
    }
    if (!preload_of(preload)) {
        fprintf(stderr, "tutti run: libtutti-mpi.so is neither beside the command nor in "
                TUTTI_TO_LIB "; install all of it\n");
        return 1;
    }
    int dynamic = loader_of(path, loader);
    if (dynamic == 0) {
        fprintf(stderr, "tutti run: %s is linked statically: nothing can stand in front of its "
                "MPI; link it with a shared one\n", argv[0]);
        return 1;
    }
    if (dynamic > 0)
        which = library_of(loader, path, library);
    if (which >= 0 && launcher_by(library, known[which].own, launcher)) {
        if (verbose)
            fprintf(stderr, "tutti run: %s loads %s; its launcher is %s\n", argv[0], library,
                    launcher);
    } else if ((r = program_find(launcher, PATH_MAX, "mpirun")) == 0) {
        if (verbose)
            fprintf(stderr, "tutti run: %s loads %s; mpirun of PATH is %s\n", argv[0],
                    which >= 0 ? "an MPI without an mpirun near it" : "no MPI by itself",
                    launcher);
    } else {
        fprintf(stderr, "tutti run: --mpi: no mpirun in PATH, nor near the MPI that %s loads\n",
                argv[0]);
        return 127;
    }
    return start(launcher, is_open_mpi(launcher), size, preload, verbose, argv);
}
