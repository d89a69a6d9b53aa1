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

static void put_promises(FILE *to, const struct report *r)
{
    char value[32], limit[32];
    fprintf(to, "promises\n");
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        fprintf(to, "  %-6s  ", p->kept ? "ok" : "missed");
        put_cell(to, p->what, -46);
        put_cell(to, unit_text(value, sizeof value, p->unit, p->value), 9);
        fprintf(to, "   <= %s\n", unit_short(limit, sizeof limit, p->unit, p->limit));
    }
    fputc('\n', to);
}

void write_tables(FILE *to, const struct report *r)
{
    fprintf(to, "%s · %d CPU%s · %s\n\n", r->machine.cpu, r->machine.cpus, r->machine.cpus == 1 ? "" : "s", r->machine.system);
    for (int k = 0; k < r->table_count; k++) {
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
}

void write_csv(FILE *to, const struct report *r)
{
    fprintf(to, "what,contender,ranks,bytes,unit,samples,value,min,p50,p99,max,ratio,ratio_low,ratio_high,against\n");
    for (int i = 0; i < r->figure_count; i++) {
        const struct figure *f = &r->figures[i];
        fprintf(to, "%s,%s,%d,%zu,%s,%zu,%.9g,%.9g,%.9g,%.9g,%.9g,", f->what, f->contender, f->ranks, f->bytes, unit_name(f->unit),
                f->samples, f->value, f->least, f->median, f->p99, f->most);
        if (f->ratio.n)
            fprintf(to, "%.6g,%.6g,%.6g,%s\n", f->ratio.median, f->ratio.low, f->ratio.high, f->against);
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
    put_member(to, "date", r->machine.date, ",\n  \"figures\": [");
    for (int i = 0; i < r->figure_count; i++) {
        const struct figure *f = &r->figures[i];
        fprintf(to, "%s\n    { ", i ? "," : "");
        put_member(to, "what", f->what, ", ");
        put_member(to, "contender", f->contender, ", ");
        put_member(to, "unit", unit_name(f->unit), ", ");
        fprintf(to, "\"ranks\": %d, \"bytes\": %zu, \"samples\": %zu, \"value\": %.9g, \"min\": %.9g, \"p50\": %.9g, \"p99\": %.9g, \"max\": %.9g",
                f->ranks, f->bytes, f->samples, f->value, f->least, f->median, f->p99, f->most);
        if (f->ratio.n) {
            fprintf(to, ", \"ratio\": %.6g, \"ratio_low\": %.6g, \"ratio_high\": %.6g, ", f->ratio.median, f->ratio.low, f->ratio.high);
            put_member(to, "against", f->against, "");
        }
        fprintf(to, " }");
    }
    fprintf(to, "\n  ],\n  \"promises\": [");
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        fprintf(to, "%s\n    { ", i ? "," : "");
        put_member(to, "what", p->what, ", ");
        put_member(to, "unit", unit_name(p->unit), ", ");
        fprintf(to, "\"value\": %.9g, \"limit\": %.9g, \"kept\": %s }", p->value, p->limit, p->kept ? "true" : "false");
    }
    fprintf(to, "\n  ]\n}\n");
}
