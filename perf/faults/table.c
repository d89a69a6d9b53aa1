/* One table of faults by systems, and one of the variants. A time counts from the fault to the
 * answer of the last rank that gets one. */
#include "faults/table.h"

#include "harness/machine.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, NAME = 11, TIME = 9 };

static const char *duration(char to[32], const struct found *f, const struct outcome *o)
{
    if (!o->concluded)
        snprintf(to, 32, "> %d s", f->limit_s);
    else if (o->ms <= 0)
        snprintf(to, 32, " ");
    else if (o->ms < 0.1)
        snprintf(to, 32, "< 0.1 ms");
    else if (o->ms < 10)
        snprintf(to, 32, "%.1f ms", o->ms);
    else if (o->ms < 10000)
        snprintf(to, 32, "%.0f ms", o->ms);
    else
        snprintf(to, 32, "%.1f s", o->ms / 1000);
    return to;
}

/* text in lines of at most `most` columns, broken at spaces, the later ones indented. */
static void wrapped(const char *text, int indent, int most, const char *end)
{
    while ((int)strlen(text) > most) {
        int n = most;
        while (n > 0 && text[n] != ' ')
            n--;
        n = n ? n : most;
        printf("%.*s\n%*s", n, text, indent, "");
        text += n + (text[n] == ' ');
    }
    if (end[strspn(end, " ")])
        printf("%-*s%s\n", most, text, end);
    else
        printf("%s\n", text);
}

static bool fault_has_rows(const struct found *f, int fault, bool variants)
{
    for (int s = 0; s < peer_system_count; s++)
        if (f->wanted[s][fault] && (peer_systems[s].of != NULL) == variants)
            return true;
    return false;
}

static void rows(const struct found *f, int fault, bool variants, bool texts)
{
    char time[32], end[48];
    for (int s = 0; s < peer_system_count; s++) {
        const struct outcome *o = outcome_at(f, s, fault);
        if (!f->wanted[s][fault] || (peer_systems[s].of != NULL) != variants)
            continue;
        snprintf(end, sizeof end, " %*s", TIME, duration(time, f, o));
        if (variants)
            printf("  %s\n  %*s", peer_systems[s].name, NAME, "");
        else
            printf("  %-*s", NAME, peer_systems[s].name);
        wrapped(o->words, NAME + 2, WIDTH - NAME - TIME - 3, end);
        for (const char *line = o->said; texts && *line;
             line += strcspn(line, "\n"), line += *line == '\n')
            printf("    | %.*s\n", (int)strcspn(line, "\n"), line);
    }
}

static void machine(const struct found *f, const char *before, const char *after)
{
    struct machine m;
    machine_describe(&m);
    printf("%s%s, %d CPUs, %s%s\n", before, m.cpu, m.cpus, m.system, after);
    printf("%s%s, load average %s at the start%s\n", before, m.date, f->load, after);
    printf("%s", before);
    for (int s = 0, n = 0; s < peer_system_count; s++)
        if (*f->versions[s] && !peer_systems[s].of)
            printf("%s%s", n++ ? ", " : "", f->versions[s]);
    printf("%s\n", after);
}

void table_terminal(const struct found *f, bool texts)
{
    machine(f, "", "");
    printf("\n%d ranks; what the rank at fault does, and how the others get away in %d s.\n"
           "\"computes\", \"SIGSTOP\", \"two comms\": with a deadline of %g s where there are "
           "any.\n",
           f->ranks, f->limit_s, f->timeout_ms / 1000.0);
    for (int variants = 0; variants < 2; variants++) {
        bool head = false;
        for (int fault = 0; fault < FAULTS; fault++) {
            if (!fault_has_rows(f, fault, variants))
                continue;
            if (variants && !head)
                printf("\nThe same with options, or without:\n");
            head = true;
            printf("\n%s\n", fault_names[fault].title);
            rows(f, fault, variants, texts);
        }
    }
}

static void cell_markdown(const struct found *f, int s, int fault)
{
    char time[32];
    const struct outcome *o = outcome_at(f, s, fault);
    if (!f->wanted[s][fault]) {
        printf(" – |");
        return;
    }
    duration(time, f, o);
    printf(" %s%s%s |", o->words, *time == ' ' || !o->concluded ? "" : ", ",
           *time == ' ' || !o->concluded ? "" : time);
}

void table_markdown(const struct found *f)
{
    machine(f, "- ", "");
    printf("- %d ranks, the last one at fault; %d tries each (those that hang: one), limit %d s, "
           "deadline %g s, grace %g s\n"
           "\n",
           f->ranks, f->repeat, f->limit_s, f->timeout_ms / 1000.0, f->grace_ms / 1000.0);
    printf("| the rank at fault |");
    for (int s = 0; s < peer_system_count; s++)
        if (*f->versions[s] && !peer_systems[s].of)
            printf(" %s |", peer_systems[s].name);
    printf("\n| --- |");
    for (int s = 0; s < peer_system_count; s++)
        if (*f->versions[s] && !peer_systems[s].of)
            printf(" --- |");
    printf("\n");
    for (int fault = 0; fault < FAULTS; fault++) {
        if (!fault_has_rows(f, fault, false))
            continue;
        printf("| %s |", fault_names[fault].title);
        for (int s = 0; s < peer_system_count; s++)
            if (*f->versions[s] && !peer_systems[s].of)
                cell_markdown(f, s, fault);
        printf("\n");
    }
    bool head = false;
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++) {
            if (!f->wanted[s][fault] || !peer_systems[s].of)
                continue;
            if (!head)
                printf("\n| with | the rank at fault | outcome |\n| --- | --- | --- |\n");
            head = true;
            printf("| %s | %s |", peer_systems[s].name, fault_names[fault].title);
            cell_markdown(f, s, fault);
            printf("\n");
        }
}

void table_csv(const struct found *f)
{
    printf("system,fault,answer,concluded,ms,words\n");
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++) {
            const struct outcome *o = outcome_at(f, s, fault);
            if (f->wanted[s][fault])
                printf("%s,%s,\"%s\",%d,%.3f,\"%s\"\n", peer_systems[s].key, fault_names[fault].key,
                       answer_name(o->answer), o->concluded, o->ms, o->words);
        }
}
