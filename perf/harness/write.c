/* Three writers, one loop each. Names in CSV and JSON are the same and are meant to stay. */
#include "harness/write.h"

#include <string.h>

const char *unit_name(enum unit unit)
{
    static const char *const names[] = { "ns", "ratio", "bytes", "bytes/s", "count", "percent" };
    return names[unit];
}

/* Columns a string takes: bytes that do not continue a UTF-8 character. */
static int columns(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

static void put_cell(FILE *to, const char *text, int width)
{
    int pad = (width < 0 ? -width : width) - columns(text);
    if (width < 0)
        fprintf(to, "%s%*s", text, pad > 0 ? pad : 0, "");
    else
        fprintf(to, "%*s%s", pad > 0 ? pad : 0, "", text);
}

/* Breaks at spaces before column 80. */
static void put_text(FILE *to, const char *text, const char *indent)
{
    int at = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at && at + 1 + (int)n > 78) {
            fputc('\n', to);
            at = 0;
        }
        at += fprintf(to, "%s%.*s", at ? " " : indent, (int)n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}

/* "at least" and "at most" by their signs, so that the table keeps its 80 columns. */
static void put_limit(FILE *to, const struct promise *p, double value)
{
    char text[40], number[32];
    snprintf(text, sizeof text, "%s %s",
             p->at_least ? ">=" : "<=", unit_short(number, sizeof number, p->unit, value));
    put_cell(to, value > 0 ? text : "", 10);
}

static void put_promises(FILE *to, const struct report *r)
{
    char value[32];
    bool floors = false, few = false;
    for (int i = 0; i < r->promise_count; i++) {
        floors |= r->promises[i].floor > 0;
        few |= r->promises[i].few;
    }
    fprintf(to, "promises\n  %-39s%9s%10s%10s%6s%5s\n", "", "measured", "must", "aim",
            floors ? "floor" : "", "kept");
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        fprintf(to, "  ");
        put_cell(to, p->what, -39);
        put_cell(to, p->measured ? unit_text(value, sizeof value, p->unit, p->value) : "-", 9);
        put_limit(to, p, p->limit);
        put_limit(to, p, p->aim);
        put_cell(to, p->floor > 0 ? unit_text(value, sizeof value, p->unit, p->floor) : "", 6);
        put_cell(to, !p->measured ? "-" : p->kept ? "yes" : "NO", 5);
        fprintf(to, "%s\n", p->few ? "?" : "");
    }
    if (few)
        put_text(to, "?: of fewer rounds than such a figure takes; give it more --seconds", "  ");
    if (floors)
        put_text(to,
                 "floor: what it would be if the library were as fast as bare barriers and copies "
                 "of the bytes that must move, in the same rounds",
                 "  ");
    fputc('\n', to);
}

static void put_remarks(FILE *to, const struct report *r)
{
    char text[240];
    fprintf(to, "remarks\n");
    for (int i = 0; i < r->remark_count; i++) {
        snprintf(text, sizeof text, "%s%s", r->remarks[i].bad ? "! " : "", r->remarks[i].text);
        put_text(to, text, "  ");
    }
    fputc('\n', to);
}

void write_tables(FILE *to, const struct report *r)
{
    fprintf(to, "%s · %d CPU%s · %s\n", r->machine.cpu, r->machine.cpus,
            r->machine.cpus == 1 ? "" : "s", r->machine.system);
    fprintf(to, "%s\n", r->machine.version);
    put_text(to, r->machine.command, "");
    fputc('\n', to);
    for (int k = 0; k < r->table_count && !r->only_promises; k++) {
        const struct table *t = &r->tables[k];
        fprintf(to, "%s\n", t->title);
        fprintf(to, "  ");
        for (int i = 0; i < t->columns; i++)
            put_cell(to, t->heads[i], t->width[i]);
        fputc('\n', to);
        for (int row = 0; row < t->rows; row++) {
            fprintf(to, "  ");
            for (int i = 0; i < t->columns; i++)
                put_cell(to, t->cells[row][i].text, t->width[i]);
            fputc('\n', to);
        }
        if (t->note[0])
            put_text(to, t->note, "  ");
        fputc('\n', to);
    }
    if (r->promise_count)
        put_promises(to, r);
    if (r->remark_count)
        put_remarks(to, r);
}

void write_csv(FILE *to, const struct report *r)
{
    fprintf(to,
            "what,contender,ranks,bytes,unit,samples,value,min,p50,p99,max,ratio,ratio_low,ratio_"
            "high,against\n");
    for (int i = 0; i < r->figure_count; i++) {
        const struct figure *f = &r->figures[i];
        fprintf(to, "%s,%s,%d,%zu,%s,%zu,%.9g,%.9g,%.9g,%.9g,%.9g,", f->what, f->contender,
                f->ranks, f->bytes, unit_name(f->unit), f->samples, f->value, f->least, f->median,
                f->p99, f->most);
        if (f->ratio.n)
            fprintf(to, "%.6g,%.6g,%.6g,%s\n", f->ratio.median, f->ratio.low, f->ratio.high,
                    f->against);
        else
            fprintf(to, ",,,\n");
    }
}

static void put_string(FILE *to, const char *s)
{
    fputc('"', to);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            fprintf(to, "\\u%04x", *s);
        else
            fputc(*s, to);
    fputc('"', to);
}

static void put_member(FILE *to, const char *name, const char *value, const char *end)
{
    fprintf(to, "\"%s\": ", name);
    put_string(to, value);
    fputs(end, to);
}

void write_json(FILE *to, const struct report *r)
{
    fprintf(to, "{\n  ");
    put_member(to, "program", r->program->name, ",\n  \"machine\": { ");
    put_member(to, "cpu", r->machine.cpu, ", ");
    fprintf(to, "\"cpus\": %d, ", r->machine.cpus);
    put_member(to, "system", r->machine.system, ", ");
    put_member(to, "build", r->machine.build, " },\n  ");
    put_member(to, "version", r->machine.version, ",\n  ");
    put_member(to, "command", r->machine.command, ",\n  ");
    put_member(to, "date", r->machine.date, ",\n  \"figures\": [");
    for (int i = 0; i < r->figure_count; i++) {
        const struct figure *f = &r->figures[i];
        fprintf(to, "%s\n    { ", i ? "," : "");
        put_member(to, "what", f->what, ", ");
        put_member(to, "contender", f->contender, ", ");
        put_member(to, "unit", unit_name(f->unit), ", ");
        fprintf(to,
                "\"ranks\": %d, \"bytes\": %zu, \"samples\": %zu, \"value\": %.9g, \"min\": %.9g, "
                "\"p50\": %.9g, \"p99\": %.9g, \"max\": %.9g",
                f->ranks, f->bytes, f->samples, f->value, f->least, f->median, f->p99, f->most);
        if (f->ratio.n) {
            fprintf(to, ", \"ratio\": %.6g, \"ratio_low\": %.6g, \"ratio_high\": %.6g, ",
                    f->ratio.median, f->ratio.low, f->ratio.high);
            put_member(to, "against", f->against, "");
        }
        if (f->high > 0)
            fprintf(to, ", \"low\": %.6g, \"high\": %.6g", f->low, f->high);
        if (f->verdict) {
            fprintf(to, ", ");
            put_member(to, "verdict", f->verdict, "");
        }
        fprintf(to, " }");
    }
    fprintf(to, "\n  ],\n  \"promises\": [");
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        fprintf(to, "%s\n    { ", i ? "," : "");
        put_member(to, "what", p->what, ", ");
        put_member(to, "unit", unit_name(p->unit), ", ");
        put_member(to, "must", p->at_least ? "at least" : "at most", ", ");
        fprintf(to, "\"limit\": %.9g, \"aim\": %.9g, ", p->limit, p->aim);
        if (p->floor > 0)
            fprintf(to, "\"floor\": %.9g, ", p->floor);
        if (p->measured)
            fprintf(to, "\"value\": %.9g, \"kept\": %s%s }", p->value,
                    p->kept ? "true" : "false", p->few ? ", \"few\": true" : "");
        else
            fprintf(to, "\"value\": null, \"kept\": null }");
    }
    fprintf(to, "\n  ],\n  \"remarks\": [");
    for (int i = 0; i < r->remark_count; i++) {
        fprintf(to, "%s\n    { ", i ? "," : "");
        put_member(to, "text", r->remarks[i].text, ", ");
        fprintf(to, "\"bad\": %s }", r->remarks[i].bad ? "true" : "false");
    }
    fprintf(to, "\n  ]\n}\n");
}
