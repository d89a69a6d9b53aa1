/* Lines over a grid: axes that end where the data ends, ticks at round numbers, labels in the unit
 * a person would use. Texts and lines take their colours from the page, so one drawing serves light
 * and dark. */
#include "harness/plot.h"

#include <math.h>

enum { WIDTH = 600, HEIGHT = 350, LEFT = 86, RIGHT = 24, TOP = 12, BOTTOM = 54, TICKS_MAX = 32 };

struct axis {
    double low, high;
    enum scale scale;
    enum unit unit;
    double ticks[TICKS_MAX];
    int count;
};

void html_text(FILE *to, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        default: fputc(*s, to);
        }
}

static void axis_tick(struct axis *a, double at)
{
    double slack = 1e-9 * fabs(a->high);
    if (a->count < TICKS_MAX && at >= a->low - slack && at <= a->high + slack)
        a->ticks[a->count++] = at;
}

/* 1-2-5 where a decade or two are seen, 1-1.5-2-3-5-7 in less, powers of ten in more; powers of
 * four for sizes. */
static void axis_log_ticks(struct axis *a)
{
    static const double few[] = { 1 }, some[] = { 1, 2, 5 }, many[] = { 1, 1.5, 2, 3, 4, 5, 7 };
    double decades = log10(a->high / a->low);
    const double *steps = decades > 3.6 ? few : decades > 1 ? some : many;
    int n = decades > 3.6 ? 1 : decades > 1 ? 3 : 7;
    if (a->unit == UNIT_BYTES) {
        for (double at = 1; at <= a->high * 1.0001; at *= 4)
            axis_tick(a, at);
        return;
    }
    for (double ten = pow(10, floor(log10(a->low))); ten <= a->high; ten *= 10)
        for (int i = 0; i < n; i++)
            axis_tick(a, ten * steps[i]);
}

static void axis_linear_ticks(struct axis *a)
{
    double rough = (a->high - a->low) / 5, ten = pow(10, floor(log10(rough))), step = ten;
    if (rough > 5 * ten)
        step = 10 * ten;
    else if (rough > 2.5 * ten)
        step = 5 * ten;
    else if (rough > ten)
        step = 2.5 * ten;
    for (double at = ceil(a->low / step) * step; at <= a->high * 1.0001; at += step)
        axis_tick(a, at);
}

static struct axis axis_of(const struct plot *p, int which)
{
    struct axis a = {
        INFINITY, -INFINITY, which ? p->y_scale : p->x_scale,
        which ? p->y_unit : p->x_unit, { 0 }, 0
    };
    for (int i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->curves[i].n; k++) {
            double v = p->curves[i].points[k][which];
            a.low = v < a.low ? v : a.low;
            a.high = v > a.high ? v : a.high;
        }
    if (!(a.low <= a.high))
        a.low = 1, a.high = 10;
    if (a.unit == UNIT_SHARE)
        a.low = 0, a.high = 100;
    else if (a.scale == SCALE_LINEAR)
        a.low = 0, a.high *= 1.05;
    else if (a.unit != UNIT_BYTES) {
        a.low = a.low > 0 ? a.low / 1.15 : 1e-3;
        a.high *= 1.15;
    }
    if (a.high <= a.low)
        a.high = a.low > 0 ? a.low * 4 : 1;
    if (a.scale == SCALE_LOG)
        axis_log_ticks(&a);
    else
        axis_linear_ticks(&a);
    return a;
}

static double axis_at(const struct axis *a, double v)        /* 0 … 1 */
{
    if (a->scale == SCALE_LOG)
        return log(v / a->low) / log(a->high / a->low);
    return (v - a->low) / (a->high - a->low);
}

static double x_of(const struct axis *x, double v)
{
    return LEFT + axis_at(x, v) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axis *y, double v)
{
    return HEIGHT - BOTTOM - axis_at(y, v) * (HEIGHT - TOP - BOTTOM);
}

static void put_axes(FILE *to, const struct plot *p, const struct axis *x, const struct axis *y)
{
    char label[32];
    fprintf(to, "<g class=\"grid\">");
    for (int i = 0; i < y->count; i++)
        fprintf(to, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                y_of(y, y->ticks[i]), y_of(y, y->ticks[i]));
    for (int i = 0; i < x->count; i++)
        fprintf(to, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x_of(x, x->ticks[i]),
                x_of(x, x->ticks[i]), TOP, HEIGHT - BOTTOM);
    fprintf(to, "</g>\n<g class=\"tick\">");
    for (int i = 0; i < y->count; i++)
        fprintf(to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 8,
                y_of(y, y->ticks[i]) + 4, unit_short(label, sizeof label, y->unit, y->ticks[i]));
    int every = x->count > 8 ? 2 : 1;
    for (int i = 0; i < x->count; i += every)
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
                x_of(x, x->ticks[i]), HEIGHT - BOTTOM + 18,
                unit_short(label, sizeof label, x->unit, x->ticks[i]));
    fprintf(to, "</g>\n<g class=\"axis\"><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
    html_text(to, p->x_title);
    fprintf(to, "</text><text transform=\"translate(15 %d) rotate(-90)\" text-anchor=\"middle\">",
            (TOP + HEIGHT - BOTTOM) / 2);
    html_text(to, p->y_title);
    fprintf(to, "</text></g>\n");
}

static void put_curve(FILE *to, const struct curve *c, const struct axis *x, const struct axis *y)
{
    char a[32], b[32];
    fprintf(to, "<g class=\"curve h%d\"><title>", c->hue);
    html_text(to, c->name);
    fprintf(to, "</title><path d=\"");
    for (size_t k = 0; k < c->n; k++)
        fprintf(to, "%c%.1f %.1f", k ? 'L' : 'M', x_of(x, c->points[k][0]),
                y_of(y, c->points[k][1]));
    fprintf(to, "\"/>");
    for (size_t k = 0; c->marks && k < c->n; k++) {
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\"><title>", x_of(x, c->points[k][0]),
                y_of(y, c->points[k][1]));
        html_text(to, c->name);
        fprintf(to, ", %s: %s</title></circle>", unit_text(a, sizeof a, x->unit, c->points[k][0]),
                unit_text(b, sizeof b, y->unit, c->points[k][1]));
    }
    fprintf(to, "</g>\n");
}

void plot_write(FILE *to, const struct plot *p)
{
    struct axis x = axis_of(p, 0), y = axis_of(p, 1);
    fprintf(to, "<figure>\n<figcaption><b>");
    html_text(to, p->title);
    fprintf(to, "</b>");
    html_text(to, p->note);
    fprintf(to, "<ul class=\"legend\">");
    for (int i = 0; i < p->count; i++) {
        if (!p->curves[i].n)
            continue;
        fprintf(to, "<li class=\"h%d\"><i></i>", p->curves[i].hue);
        html_text(to, p->curves[i].name);
        fprintf(to, "</li>");
    }
    fprintf(to, "</ul></figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
            HEIGHT);
    html_text(to, p->title);
    fprintf(to, "\">\n");
    put_axes(to, p, &x, &y);
    for (int i = p->count - 1; i >= 0; i--)                  /* the first on top */
        if (p->curves[i].n)
            put_curve(to, &p->curves[i], &x, &y);
    fprintf(to, "</svg>\n</figure>\n");
}
