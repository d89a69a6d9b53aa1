/* A job must start the same with a complete file, half a file, another machine's file or no file.
 * So every possible fault is checked here, before the text reaches the arena: later a wrong rule
 * would be an error of every rank.
 * Cost, only for the rank that makes an arena: without a file, one failing stat; else some 100 us,
 * nearly all of it to identify the machine. */
#include "coll/tuning_file.h"

#include "base/error.h"
#include "base/knob.h"
#include "coll/select.h"
#include "os/cpu.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CACHE_LEVELS = 4 };

bool tuning_file_path(char path[TUNED_PATH])
{
    const char *said = getenv(knob_row(KNOB_TUNED)->name), *config = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    struct text t = { path, TUNED_PATH, 0 };
    text_clear(&t);
    if (said) {
        if (!strcmp(said, "none"))
            return false;
        text_add(&t, "%s", said);
    } else if (config
               && *config == '/') /* its specification says to ignore a relative one */
        text_add(&t, "%s/tutti/rules", config);
    else if (home && *home == '/')
        text_add(&t, "%s/.config/tutti/rules", home);
    return t.used > 0 && t.used + 1 < t.room;
}

void tuning_file_machine(char machine[TUNED_MACHINE])
{
    char model[100];
    struct text t = { machine, TUNED_MACHINE, 0 };
    int cpus = cpu_machine();
    cpu_model(model, sizeof model);
    text_clear(&t);
    text_add(&t, "%s, %d CPU%s, caches", model, cpus, cpus == 1 ? "" : "s");
    size_t before = t.used;
    for (int level = 1; level <= CACHE_LEVELS; level++) {
        size_t bytes = cpu_cache_bytes(level);
        if (bytes)
            text_add(&t, " ");
        if (bytes)
            text_add_bytes(&t, bytes);
    }
    if (t.used == before)
        text_add(&t, " unknown");
}

/* Joins the lines that are no comments, with ";" between them. False: there is no room. */
static bool join_lines(const char *file, char *rules, size_t room)
{
    struct text t = { rules, room, 0 };
    size_t wanted = 0;
    text_clear(&t);
    for (const char *line = file; *line; line += strcspn(line, "\n"), line += *line != 0) {
        size_t blanks = strspn(line, " \t\r"), n = strcspn(line, "\n");
        if (blanks >= n || line[blanks] == '#')
            continue;
        while (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')
            n--;
        wanted += n - blanks + (wanted > 0);
        text_add(&t, "%s%.*s", t.used ? ";" : "", (int)(n - blanks), line + blanks);
    }
    return wanted < room;
}

enum tuned tuning_file_parse(const char *file, const char *machine, char rules[RULES_TEXT],
                             struct text *why)
{
    size_t head = strlen(TUNED_HEAD), n = strcspn(file, "\n");
    rules[0] = 0;
    if (n <= head || strncmp(file, TUNED_HEAD, head) != 0) {
        text_add(why, "its first line is not \"" TUNED_HEAD "\" and a machine");
        return TUNED_DAMAGED;
    }
    if (n - head != strlen(machine) || strncmp(file + head, machine, n - head) != 0) {
        text_add(why, "%.*s", (int)(n - head < TUNED_MACHINE ? n - head : TUNED_MACHINE),
                 file + head);
        return TUNED_ELSEWHERE;
    }
    struct rules *parsed = malloc(sizeof *parsed);
    bool whole = file[n] && file[strlen(file) - 1] == '\n',
         fits = join_lines(file + n, rules, TUNED_RULES + 1);
    if (!whole)
        text_add(why, "it ends in the middle of a line");
    else if (!fits)
        text_add(why, "it says more than %d bytes of rules", TUNED_RULES);
    if (whole && fits && parsed && select_parse(parsed, rules, why) == 0) {
        free(parsed);
        return TUNED_HERE;
    }
    free(parsed);
    rules[0] = 0;
    return TUNED_DAMAGED;
}

/* Opens regular files only: a named pipe would block until another process writes. */
enum tuned tuning_file_read(const char *path, char rules[RULES_TEXT], struct text *why)
{
    struct stat st;
    char file[TUNED_FILE], machine[TUNED_MACHINE];
    rules[0] = 0;
    int error = stat(path, &st) == 0 ? 0 : -errno;
    if (error == -ENOENT || error == -ENOTDIR)
        return TUNED_NONE;
    if (error == 0 && (!S_ISREG(st.st_mode) || st.st_size >= TUNED_FILE)) {
        if (S_ISREG(st.st_mode))
            text_add(why, "it is larger than %d bytes", TUNED_FILE - 1);
        else
            text_add(why, "it is no regular file");
        return TUNED_DAMAGED;
    }
    int got = error == 0 ? file_read(path, file, sizeof file) : error;
    if (got < 0) {
        text_add(why, "it cannot be read: %s", error_system(-got));
        return TUNED_DAMAGED;
    }
    if (strlen(file) != (size_t)got) {
        text_add(why, "it is no text");
        return TUNED_DAMAGED;
    }
    tuning_file_machine(machine);
    return tuning_file_parse(file, machine, rules, why);
}

void tuning_file_lay(const char *said, char rules[RULES_TEXT])
{
    char path[TUNED_PATH], file[RULES_TEXT], ignored[8];
    struct text why = TEXT_IN(ignored), t = { rules, RULES_TEXT, 0 };
    text_clear(&why);
    text_clear(&t);
    said = said ? said : "";
    file[0] = 0;
    if (tuning_file_path(path))
        tuning_file_read(path, file, &why);
    /* If rules of the environment leave no room for the file's, only the environment's count. */
    if (file[0] && strlen(file) + 1 + strlen(said) < RULES_TEXT)
        text_add(&t, "%s|", file);
    text_add(&t, "%s", said);
}
