/* Order of the page: the question, the promises as cards, the plots, the tables, the machine.
 * Colours are chosen to stay apart for people who see red and green alike; the library's own curve
 * is the thick blue one everywhere. */
#include "harness/page.h"

#include "harness/plot.h"

#include <stdlib.h>

enum { CARDS_MOST = 12 };

static const char style[] =
    ":root{color-scheme:light dark;--ground:#f7f8fa;--card:#fff;--ink:#16202c;--soft:#5b6877;"
    "--line:#e2e7ed;--good:#0a7d45;--bad:#c02f1d;\n"
    "--h0:#0b63ce;--h1:#e08a00;--h2:#0f9d6e;--h3:#cf4420;--h4:#8a4fd0;--h5:#2aa5d8;--h6:#b0527f;"
    "--h7:#7a828c;--h8:#8f6b00;--h9:#d1495b}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#0f141a;--card:#171e27;--ink:#e8edf3;"
    "--soft:#97a5b5;--line:#293440;--good:#4cc38a;"
    "--bad:#ff7a66;\n"
    "--h0:#5aa9ff;--h1:#f5b041;--h2:#3fcf9b;--h3:#ff8361;--h4:#b893ff;--h5:#63d0f5;--h6:#e58fb8;--"
    "h7:#98a2ad;--h8:#d3b45c;--h9:#ff9aa8}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:40px 24px 56px}\n"
    "h1{font-size:30px;line-height:1.15;letter-spacing:-.02em;margin:0}h1 span{color:var(--h0)}\n"
    "header p{color:var(--soft);margin:8px 0 0;max-width:70ch}h2{font-size:18px;margin:38px 0 12px}"
    "\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(205px,1fr));gap:14px;"
    "margin-top:26px}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--good);"
    "border-radius:10px;padding:12px 15px;"
    "display:flex;flex-direction:column}\n"
    ".card.missed{border-left-color:var(--bad)}.card b{font-size:25px;letter-spacing:-.02em;"
    "font-variant-numeric:tabular-nums}\n"
    ".card small{color:var(--soft);display:block;font-size:13px;line-height:1.35;flex:1}"
    ".card em{font-style:normal;font-size:13px;color:var(--good)}\n"
    ".card.missed em{color:var(--bad)}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr));"
    "gap:18px}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:12px;"
    "padding:18px 18px 10px;display:flex;"
    "flex-direction:column;justify-content:space-between}\n"
    "figcaption{font-size:13px;color:var(--soft)}figcaption b{display:block;color:var(--ink);"
    "font-size:16px}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:3px 18px;margin:10px 0 8px;padding:0;"
    "color:var(--ink)}\n"
    ".legend i{display:inline-block;width:18px;height:3px;border-radius:2px;background:var(--c);"
    "vertical-align:middle;margin-right:7px}\n"
    ".legend .h0{font-weight:600}.legend .h0 i{height:5px}\n"
    "svg{width:100%;height:auto;display:block}.grid line{stroke:var(--line);stroke-width:1}\n"
    ".tick text{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}"
    ".axis text{fill:var(--soft);font-size:13px}\n"
    ".curve path{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;"
    "stroke-linecap:round}.curve.h0 path{stroke-width:3.6}\n"
    ".curve circle{fill:var(--card);stroke:var(--c);stroke-width:2}.curve.h0 circle{fill:var(--c)}"
    "\n"
    ".h0{--c:var(--h0)}.h1{--c:var(--h1)}.h2{--c:var(--h2)}.h3{--c:var(--h3)}.h4{--c:var(--h4)}"
    ".h5{--c:var(--h5)}.h6{--c:var(--h6)}"
    ".h7{--c:var(--h7)}.h8{--c:var(--h8)}.h9{--c:var(--h9)}\n"
    ".remarks{color:var(--soft)}.remarks .bad{color:var(--bad);font-weight:600}\n"
    ".sheet{background:var(--card);border:1px solid var(--line);border-radius:12px;overflow-x:auto;"
    "padding:6px 0}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:6px 16px;text-align:right;white-space:nowrap}th{color:var(--soft);"
    "font-weight:500;font-size:13px}\n"
    "td.left,th.left{text-align:left}tr+tr td{border-top:1px solid var(--line)}"
    "tr.strong td{font-weight:600}\n"
    ".note{color:var(--soft);font-size:13px;margin:8px 2px 0;max-width:95ch}\n"
    "footer{color:var(--soft);font-size:13px;margin-top:44px;border-top:1px solid var(--line);"
    "padding-top:14px}\n";

static void put_table(FILE *to, const struct table *t)
{
    fprintf(to, "<h2>");
    html_text(to, t->title);
    fprintf(to, "</h2>\n<div class=\"sheet\"><table><thead><tr>");
    for (int i = 0; i < t->columns; i++) {
        fprintf(to, "<th%s>", t->width[i] < 0 ? " class=\"left\"" : "");
        html_text(to, t->heads[i]);
        fprintf(to, "</th>");
    }
    fprintf(to, "</tr></thead><tbody>\n");
    for (int row = 0; row < t->rows; row++) {
        fprintf(to, "<tr%s>", t->strong[row] ? " class=\"strong\"" : "");
        for (int i = 0; i < t->columns; i++) {
            fprintf(to, "<td%s>", t->width[i] < 0 ? " class=\"left\"" : "");
            html_text(to, t->cells[row][i].text);
            fprintf(to, "</td>");
        }
        fprintf(to, "</tr>\n");
    }
    fprintf(to, "</tbody></table></div>\n");
    if (t->note[0]) {
        fprintf(to, "<p class=\"note\">");
        html_text(to, t->note);
        fprintf(to, "</p>\n");
    }
}

static void put_cards(FILE *to, const struct report *r)
{
    char value[32], limit[32];
    fprintf(to, "<section class=\"cards\">\n");
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        if (!p->measured)
            continue;
        fprintf(to, "<div class=\"card%s\"><b>%s</b><small>", p->kept ? "" : " missed",
                unit_text(value, sizeof value, p->unit, p->value));
        html_text(to, p->what);
        fprintf(to, "</small><em>%s at %s %s",
                p->kept ? "kept:" : "missed:", p->at_least ? "least" : "most",
                unit_short(limit, sizeof limit, p->unit, p->limit));
        if (p->aim > 0)
            fprintf(to, ", aim %s", unit_short(limit, sizeof limit, p->unit, p->aim));
        fprintf(to, "</em></div>\n");
    }
    fprintf(to, "</section>\n");
}

/* The same as a table, where there are too many to be taken in as cards. */
static void put_promises(FILE *to, const struct report *r)
{
    static const char *const heads[] = {
        "promise", "measured", "must", "aim", "at the floor", "kept"
    };
    struct table t = { .title = "Promises", .columns = 6, .width = { -40, 9, 11, 11, 11, 8 } };
    char text[3][40], floor[32], number[32];
    for (int i = 0; i < t.columns; i++)
        snprintf(t.heads[i], sizeof t.heads[i], "%s", heads[i]);
    for (int i = 0; i < r->promise_count; i++) {
        const struct promise *p = &r->promises[i];
        const char *sign = p->at_least ? "≥" : "≤";
        snprintf(text[0], sizeof text[0], "%s",
                 p->measured ? unit_text(number, sizeof number, p->unit, p->value)
                             : "not measured");
        snprintf(text[1], sizeof text[1], "%s %s", sign,
                 unit_short(number, sizeof number, p->unit, p->limit));
        snprintf(text[2], sizeof text[2], "%s %s", sign,
                 unit_short(number, sizeof number, p->unit, p->aim));
        const char *cells[] = { p->what, text[0], text[1], p->aim > 0 ? text[2] : "",
                                p->floor > 0 ? unit_text(floor, sizeof floor, p->unit,
                                                         p->floor) : "",
                                !p->measured ? "-"
                                    : p->few ? p->kept ? "yes, of few rounds" : "no, of few rounds"
                                    : p->kept ? "yes" : "no" };
        table_row(&t, p->measured && !p->kept, cells);
    }
    put_table(to, &t);
    free(t.cells);
    free(t.strong);
}

static void put_remarks(FILE *to, const struct report *r)
{
    if (!r->remark_count)
        return;
    fprintf(to, "<h2>Remarks</h2>\n<ul class=\"remarks\">\n");
    for (int i = 0; i < r->remark_count; i++) {
        fprintf(to, "<li%s>", r->remarks[i].bad ? " class=\"bad\"" : "");
        html_text(to, r->remarks[i].text);
        fprintf(to, "</li>\n");
    }
    fprintf(to, "</ul>\n");
}

void write_page(FILE *to, const struct report *r)
{
    fprintf(to,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>tutti: %s</title>\n"
            "<style>\n"
            "%s</style>\n"
            "</head>\n"
            "<body>\n<main>\n<header><h1><span>tutti</span> %s</h1><p>",
            r->program->name, style, r->program->name);
    html_text(to, r->program->question);
    fprintf(to, "</p></header>\n");
    if (r->promise_count > CARDS_MOST)
        put_promises(to, r);
    else if (r->promise_count)
        put_cards(to, r);
    if (r->plot_count)
        fprintf(to, "<h2>Plots</h2>\n<section class=\"plots\">\n");
    for (int i = 0; i < r->plot_count; i++)
        plot_write(to, &r->plots[i]);
    if (r->plot_count)
        fprintf(to, "</section>\n");
    for (int i = 0; i < r->table_count; i++)
        put_table(to, &r->tables[i]);
    put_remarks(to, r);
    fprintf(to, "<footer>");
    html_text(to, r->machine.cpu);
    fprintf(to, ", %d CPU%s · ", r->machine.cpus, r->machine.cpus == 1 ? "" : "s");
    html_text(to, r->machine.system);
    fprintf(to, " · ");
    html_text(to, r->machine.build);
    fprintf(to, " · ");
    html_text(to, r->machine.version);
    fprintf(to, " · <code>");
    html_text(to, r->machine.command);
    fprintf(to, "</code> · %s</footer>\n</main>\n</body>\n</html>\n", r->machine.date);
}
